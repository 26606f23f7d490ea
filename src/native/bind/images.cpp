// Binds core/images.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/bind.h"
#include "core/base/pixels.h"
#include "core/images/image_decoder.h"
#include "core/resize/resample_plan.h"
#include "core/threads/per_thread.h"
#include "core/transforms/part_decoder.h"

namespace stoker::bind {
namespace {

// Rows of pixels of the caller that can be written to; pinned while it lives. Needs the GIL to begin and to
// end.
class PixelTarget {
 public:
  // Throws kBadArgument unless it is an array of pixels of the mode, whose rows have no gaps.
  PixelTarget(nb::handle out, PixelMode mode) {
    constexpr int kFlags = PyBUF_FORMAT | PyBUF_STRIDES;
    if (PyObject_GetBuffer(out.ptr(), &buffer_, kFlags | PyBUF_WRITABLE) != 0) {
      PyErr_Clear();
      throw Error(ErrorCode::kBadArgument,
                  PyObject_CheckBuffer(out.ptr()) == 0
                      ? "out is of type " + name_of_type(out) + "; it must be a NumPy array"
                      : std::string("out cannot be written to; give an array that can, such as a copy"));
    }
    try {
      check(out, mode);
    } catch (...) {
      PyBuffer_Release(&buffer_);
      throw;
    }
  }
  PixelTarget(const PixelTarget&) = delete;
  PixelTarget& operator=(const PixelTarget&) = delete;
  ~PixelTarget() { PyBuffer_Release(&buffer_); }

  // Where pixels of that size go, which come of `source`. Throws kBadArgument where it has another shape, or
  // lies in the memory of `source`.
  RgbSlot slot(Extent size, std::span<const uint8_t> source) const {
    if (side(0) != size.height || side(1) != size.width) {
      const std::string channels = std::to_string(side(2)) + ")";
      throw Error(ErrorCode::kBadArgument, "out has the shape (" + std::to_string(side(0)) + ", " +
                                               std::to_string(side(1)) + ", " + channels +
                                               ", and the pixels (" + std::to_string(size.height) + ", " +
                                               std::to_string(size.width) + ", " + channels);
    }
    auto* const first = static_cast<uint8_t*>(buffer_.buf);
    const auto stride = static_cast<size_t>(buffer_.strides[0]);
    const uint8_t* const end = first + static_cast<size_t>(side(0) - 1) * stride + row_bytes();
    const std::less<> before;
    if (before(first, source.data() + source.size()) && before(source.data(), end)) {
      throw Error(ErrorCode::kBadArgument, "out lies in the memory of what is decoded; give another array");
    }
    return {first, stride};
  }

 private:
  static std::string text_of(nb::handle object) { return nb::cast<std::string>(nb::str(object)); }
  static std::string name_of_type(nb::handle object) { return text_of(object.type().attr("__name__")); }

  Py_ssize_t side(int axis) const { return buffer_.shape[axis]; }
  size_t row_bytes() const { return static_cast<size_t>(side(1) * side(2) * buffer_.itemsize); }

  void check(nb::handle out, PixelMode mode) {
    const auto channels = static_cast<Py_ssize_t>(channels_of(mode));
    const std::string_view type = mode == PixelMode::kI16 ? "H" : "B";
    if (buffer_.format != type || buffer_.ndim != 3 || side(2) != channels || side(0) < 1 || side(1) < 1) {
      const std::string wanted = mode == PixelMode::kI16 ? "uint16" : "uint8";
      std::string given = "out is of type " + name_of_type(out);
      if (nb::hasattr(out, "dtype") && nb::hasattr(out, "shape")) {
        given = "out is " + text_of(out.attr("dtype")) + " of shape " + text_of(out.attr("shape"));
      }
      throw Error(ErrorCode::kBadArgument, given + "; pixels of mode " + name_of(mode) + " are " + wanted +
                                               " of shape (height, width, " + std::to_string(channels) + ")");
    }
    // The stride of an axis of one element means nothing.
    const bool is_packed = (side(2) == 1 || buffer_.strides[2] == buffer_.itemsize) &&
                           (side(1) == 1 || buffer_.strides[1] == channels * buffer_.itemsize);
    if (!is_packed || (side(0) > 1 && buffer_.strides[0] < static_cast<Py_ssize_t>(row_bytes()))) {
      throw Error(ErrorCode::kBadArgument,
                  "out has gaps in its rows, or they do not follow each other; give an array that is "
                  "contiguous, or rows of one");
    }
  }

  Py_buffer buffer_{};
};

nb::object decode(const ByteView& data, std::optional<Box> box, uint64_t max_pixels, const std::string& mode,
                  std::optional<std::tuple<int, int>> size, const std::string& filter,
                  const std::string& decode, nb::object out, bool turns) {
  PartSpec spec;
  spec.turns = turns;
  spec.mode = pixel_mode_named(mode);
  if (box) spec.part = rect_of(*box);
  if (size) spec.size = Extent{std::get<1>(*size), std::get<0>(*size)};
  spec.filter = filter_named(filter);
  spec.decode = decode_mode_named(decode);
  spec.max_pixels = max_pixels;
  std::optional<PixelTarget> target;
  if (!out.is_none()) target.emplace(out, spec.mode);
  std::unique_ptr<uint8_t[]> pixels;
  Extent extent;
  {
    WithoutGil nogil;
    static PerThread<PartDecoder> decoders;  // threads come and go slowly, and their memory is worth keeping
    PartDecoder& decoder = decoders.get();
    extent = decoder.open(bytes_of(data), spec);
    RgbSlot slot;
    if (target) {
      slot = target->slot(extent, bytes_of(data));
    } else {
      const size_t stride = static_cast<size_t>(extent.width) * pixel_bytes(spec.mode);
      pixels = memory_for_pixels(stride * static_cast<size_t>(extent.height));
      slot = {pixels.get(), stride};
    }
    decoder.write(slot);
  }
  return target ? out : give_pixels(std::move(pixels), extent, spec.mode);
}

using Pixels = nb::ndarray<nb::ro, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

void copy(const Pixels& pixels, const std::string& mode, nb::object out) {
  const PixelMode named = pixel_mode_named(mode);
  if (pixels.shape(2) * pixels.itemsize() != pixel_bytes(named)) {
    throw Error(ErrorCode::kBadArgument, "The pixels are not of mode " + mode);
  }
  const PixelTarget target(out, named);
  const size_t row = pixels.shape(1) * pixels.shape(2) * pixels.itemsize();
  const auto* from = static_cast<const uint8_t*>(pixels.data());
  const RgbSlot slot = target.slot(extent_of(pixels.shape(0), pixels.shape(1)), {from, pixels.nbytes()});
  for (size_t y = 0; y < pixels.shape(0); ++y) std::memcpy(slot.data + y * slot.stride, from + y * row, row);
}

// One per thread: a decoder keeps its memory, and Python threads come and go slowly.
ImageDecoder& decoder() {
  static PerThread<ImageDecoder> decoders;
  return decoders.get();
}

void check(const ByteView& data, uint64_t max_pixels) {
  WithoutGil nogil;
  decoder().open(bytes_of(data), max_pixels);
  decoder().check();
}

std::vector<std::string> formats() {
  std::vector<std::string> names{"jpeg"};
  if (has_png()) names.emplace_back("png");
  if (has_webp()) names.emplace_back("webp");
  return names;
}

}  // namespace

void register_images(nb::module_& m) {
  m.def("image_formats", &formats,
        "What the core decodes: \"jpeg\", and \"png\" and \"webp\" where it was built with their libraries.");
  m.def(
      "decode_image", &decode, nb::arg("data"), nb::arg("box") = nb::none(),
      nb::arg("max_pixels") = kDefaultMaxPixels, nb::arg("mode") = "RGB", nb::kw_only(),
      nb::arg("size") = nb::none(), nb::arg("filter") = "bilinear", nb::arg("decode") = "exact",
      nb::arg("out") = nb::none(), nb::arg("turns") = false,
      nb::sig("def decode_image(data: collections.abc.Buffer, box: tuple[int, int, int, int] | None = None, "
              "max_pixels: int = 134217728, mode: str = \"RGB\", *, size: tuple[int, int] | None = None, "
              "filter: str = \"bilinear\", decode: str = \"exact\", "
              "out: numpy.typing.NDArray[typing.Any] | None = None, turns: bool = False) "
              "-> numpy.typing.NDArray[typing.Any]"),
      "Decode an image file of one of image_formats(), or its box (left, top, right, bottom), and resize it "
      "to "
      "`size` (height, width), to (height, width, channels): uint8 of mode RGB, L or RGBA, uint16 of I;16. "
      "With "
      "`out`, an array of that shape, the pixels go there, and it is what is returned. `turns`: first as its "
      "exif_orientation() says.");
  m.def(
      "copy_pixels", &copy, nb::arg("pixels"), nb::arg("mode"), nb::arg("out"),
      nb::sig("def copy_pixels(pixels: numpy.typing.NDArray[typing.Any], mode: str, "
              "out: numpy.typing.NDArray[typing.Any]) -> None"),
      "Copy pixels of a mode, (height, width, channels), to where decode_image puts them, with its errors.");
  m.def(
      "exif_orientation", [](const ByteView& data) { return exif_orientation(bytes_of(data)); },
      nb::arg("data"),
      "How an image file of one of image_formats() is seen upright, by EXIF or else XMP: 1 to 8, 1 for "
      "nothing.");
  m.def("check_image", &check, nb::arg("data"), nb::arg("max_pixels") = kDefaultMaxPixels,
        "Read all of an image file of one of image_formats(); what decode_image would refuse raises "
        "ImageError.");
}

}  // namespace stoker::bind

// Binds core/resize.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bind/bind.h"
#include "core/base/errors.h"
#include "core/resize/resample_modes.h"
#include "core/resize/resample_plan.h"
#include "core/resize/resample_tf1.h"

namespace stoker::bind {
namespace {

using RgbOut = nb::ndarray<nb::numpy, uint8_t, nb::shape<-1, -1, 3>, nb::c_contig>;

using Image = nb::ndarray<nb::ro, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// The mode whose pixels the array has.
PixelMode mode_of(const Image& pixels) {
  const size_t channels = pixels.shape(2);
  if (pixels.dtype() == nb::dtype<uint16_t>() && channels == 1) return PixelMode::kI16;
  if (pixels.dtype() == nb::dtype<uint8_t>()) {
    for (const PixelMode mode : {PixelMode::kRgb, PixelMode::kL, PixelMode::kRgba}) {
      if (channels == channels_of(mode)) return mode;
    }
  }
  throw Error(ErrorCode::kBadArgument,
              "Only uint8 (height, width, 1, 3 or 4) and uint16 (height, width, 1) are resized");
}

// Rows of the pixels that `needed` says, as RGBX, a few at a time.
void run(ModeResampler& resampler, const Image& pixels, PixelMode mode, Rect needed, bool flip,
         RgbSlot slot) {
  constexpr int32_t kRowsTogether = 16;
  const auto width = static_cast<size_t>(needed.width);
  const size_t stride = pixels.shape(1) * pixel_bytes(mode), bytes = width * kRgbxBytes;
  const uint8_t* const first =
      static_cast<const uint8_t*>(pixels.data()) + static_cast<size_t>(needed.x) * pixel_bytes(mode);
  std::vector<uint8_t> rows(bytes * kRowsTogether + kRgbxPadding);
  resampler.start(flip, slot);
  for (int32_t done = 0; done < needed.height;) {
    const int32_t count = std::min(kRowsTogether, needed.height - done);
    for (int32_t y = 0; y < count; ++y) {
      const uint8_t* from = first + static_cast<size_t>(needed.y + done + y) * stride;
      unpack(mode, from, width, rows.data() + static_cast<size_t>(y) * bytes);
    }
    resampler.add({rows.data(), bytes, {needed.width, count}}, done);
    done += count;
  }
  resampler.finish();
}

nb::object resize(const Image& pixels, int width, int height, const std::string& filter,
                  std::optional<Box> window, bool flip) {
  const PixelMode mode = mode_of(pixels);
  ModeResampler resampler(mode);
  const Extent in = extent_of(pixels.shape(0), pixels.shape(1));
  Rect part{0, 0, width, height};
  if (window) part = rect_of(*window);
  // Before the buffer: it refuses senseless sizes.
  const Rect needed =
      resampler.plan_part(filter_named(filter), {0, 0, in.width, in.height}, {width, height}, part, {});
  const size_t stride = static_cast<size_t>(part.width) * pixel_bytes(mode);
  auto out = std::make_unique_for_overwrite<uint8_t[]>(stride * static_cast<size_t>(part.height));
  {
    WithoutGil nogil;
    run(resampler, pixels, mode, needed, flip, {out.get(), stride});
  }
  return give_pixels(std::move(out), {part.width, part.height}, mode);
}

RgbOut resize_for_tf1(const RgbImage& pixels, int width, int height, bool align_corners) {
  const Extent in = extent_of(pixels.shape(0), pixels.shape(1));
  if (width < 1 || height < 1) throw Error(ErrorCode::kBadArgument, "Cannot resize to nothing");
  const size_t columns = static_cast<size_t>(width), rows = static_cast<size_t>(height);
  auto out = std::make_unique_for_overwrite<uint8_t[]>(columns * rows * kRgbBytes);
  {
    WithoutGil nogil;
    resize_tf1(pixels.data(), in, {width, height}, align_corners, {out.get(), columns * kRgbBytes});
  }
  return give<RgbOut>(std::move(out), {rows, columns, kRgbBytes});
}

}  // namespace

void register_resize(nb::module_& m) {
  m.def(
      "resize", &resize, nb::arg("pixels"), nb::arg("width"), nb::arg("height"), nb::arg("filter"),
      nb::kw_only(), nb::arg("window") = nb::none(), nb::arg("flip") = false,
      nb::sig("def resize(pixels: numpy.typing.NDArray[typing.Any], width: int, height: int, filter: str, *, "
              "window: tuple[int, int, int, int] | None = None, flip: bool = False) -> "
              "numpy.typing.NDArray[typing.Any]"),
      "Resize (height, width, channels), bit-equal to Pillow in the mode of as many channels: uint8 of 1, 3 "
      "or 4 (L, RGB, RGBA), or uint16 of 1 (I;16); only `window` (left, top, right, bottom) of the result, "
      "mirrored if asked.");
  m.def("resize_tf1", &resize_for_tf1, nb::arg("pixels"), nb::arg("width"), nb::arg("height"), nb::kw_only(),
        nb::arg("align_corners"),
        "Resize RGB of shape (height, width, 3) as TensorFlow 1's resize_bilinear and a cast to uint8 do.");
}

}  // namespace stoker::bind

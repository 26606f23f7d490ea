// What the binding files share. Types in, types out; no parsing and no policy lives in bind/.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/without_gil.h"
#include "core/base/errors.h"
#include "core/base/pixel_mode.h"
#include "core/base/pixels.h"
#include "core/jpeg/decoder.h"
#include "core/jpeg/encode.h"
#include "core/resize/resample.h"

namespace stoker::bind {

namespace nb = nanobind;

// A column of numbers that is the caller's, pinned for the call.
template <typename T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Rows of pixels that are the caller's.
using RgbImage = nb::ndarray<const uint8_t, nb::shape<-1, -1, 3>, nb::c_contig, nb::device::cpu>;

// (left, top, right, bottom), right and bottom exclusive.
using Box = std::tuple<int, int, int, int>;

// Throws kBadArgument for a box whose sides no image can have.
inline Rect rect_of(const Box& box) {
  const auto [left, top, right, bottom] = box;
  const int64_t width = int64_t{right} - left, height = int64_t{bottom} - top;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (width > kMost || height > kMost || width < -kMost || height < -kMost) {
    throw Error(ErrorCode::kBadArgument, "A box of " + std::to_string(width) + " x " +
                                             std::to_string(height) + " pixels is larger than any image");
  }
  return {left, top, static_cast<int32_t>(width), static_cast<int32_t>(height)};
}

// The size of an array of pixels. Throws kBadArgument for more rows or columns than an image can have.
inline Extent extent_of(size_t height, size_t width) {
  constexpr size_t kMost = std::numeric_limits<int32_t>::max();
  if (height > kMost || width > kMost) {
    throw Error(ErrorCode::kBadArgument, "An array of " + std::to_string(height) + " x " +
                                             std::to_string(width) + " pixels is larger than any image");
  }
  return {static_cast<int32_t>(width), static_cast<int32_t>(height)};
}

// A read-only, contiguous view of the caller's bytes. It pins the buffer, and never copies it. Needs the GIL
// to begin and to end. A nb::ndarray asks every object for __dlpack__ first, which bytes do not have, and
// through the stable interface that answer takes half a microsecond.
class ByteView {
 public:
  ByteView() = default;
  ByteView(ByteView&& other) noexcept : buffer_(std::exchange(other.buffer_, {})) {}
  ByteView& operator=(ByteView&& other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~ByteView() { PyBuffer_Release(&buffer_); }  // does nothing without a buffer

  // False if the object has no buffer of bytes in a row.
  bool pin(nb::handle object) noexcept {
    constexpr std::string_view kBytes = "B";
    if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) {
      PyErr_Clear();
      return false;
    }
    return buffer_.ndim == 1 && (buffer_.format == nullptr || buffer_.format == kBytes);
  }

  const uint8_t* data() const { return static_cast<const uint8_t*>(buffer_.buf); }
  size_t size() const { return static_cast<size_t>(buffer_.len); }

 private:
  Py_buffer buffer_{};
};

inline std::span<const uint8_t> bytes_of(const ByteView& view) {
  return {view.data(), view.size()};
}

// A path as the operating system wants it, which need not be UTF-8.
std::string system_path(nb::handle path);

// The other way round: bytes that are not UTF-8 come back as os.fsdecode() gives them.
nb::object text(const std::string& value);

// A function of Python that is freed with the GIL, whichever thread is the last to need it, so that copies of
// what holds it need no GIL.
std::shared_ptr<nb::callable> hold(nb::callable function);

// What an exception says, with escapes for what is no text; nothing where it cannot say it. Needs the GIL.
std::string words_of(nb::handle error);

// What the names of Python mean. Throw kBadArgument for others.
PixelMode pixel_mode_named(const std::string& name);
DecodeMode decode_mode_named(const std::string& name);
JpegEncodeSpec encode_spec(int quality, const std::string& subsampling, bool restart, bool optimize);

// Releasing the GIL pays for work of about a microsecond and more: a checksum of some 16 KiB.
inline constexpr size_t kWorthReleasing = size_t{16} << 10;

template <typename Work>
auto without_gil_from(size_t bytes, const Work& work) {
  if (bytes < kWorthReleasing) return work();
  const WithoutGil nogil;
  return work();
}

// The Python exception for an error of the core. Needs the GIL.
nb::object exception_of(const std::exception_ptr& error);

// (path, record, offset), as the where() of every source of samples gives it.
inline nb::tuple location_of(const Where& where) {
  return nb::make_tuple(text(where.path), where.record, where.offset == kUnknown ? 0 : where.offset);
}

// An array of that shape that numpy owns from now on. `Array` is a nb::ndarray for numpy.
template <typename Array, typename T>
Array give(std::unique_ptr<T[]> values, std::initializer_list<size_t> shape) {
  nb::capsule owner(values.get(), [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return Array(values.release(), shape, owner);
}

// Memory for pixels, filled with nothing. Of a large image, whose memory the system would give page by page
// while it is decoded, in huge pages where it has some, as NumPy does.
std::unique_ptr<uint8_t[]> memory_for_pixels(size_t bytes);

// Pixels of a mode, row by row without gaps, which numpy owns from now on: (height, width, channels).
nb::object give_pixels(std::unique_ptr<uint8_t[]> pixels, Extent size, PixelMode mode);

// A vector that numpy owns from now on.
template <typename T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> give(std::vector<T> values) {
  auto held = std::make_unique<std::vector<T>>(std::move(values));
  T* data = held->data();
  const size_t count = held->size();
  nb::capsule owner(held.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  held.release();
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {count}, owner);
}

void register_errors(nb::module_& m);
void register_shards(nb::module_& m);
void register_examples(nb::module_& m);
void register_jpeg(nb::module_& m);
void register_images(nb::module_& m);
void register_resize(nb::module_& m);
void register_order(nb::module_& m);
void register_remote(nb::module_& m);
void register_sources(nb::module_& m);
void register_color(nb::module_& m);
void register_transforms(nb::module_& m);
void register_builds(nb::module_& m);
void register_audit(nb::module_& m);
void register_engine(nb::module_& m);

}  // namespace stoker::bind

template <>
struct nanobind::detail::type_caster<stoker::bind::ByteView> {
  NB_TYPE_CASTER(stoker::bind::ByteView, const_name("collections.abc.Buffer"))

  bool from_python(handle object, uint8_t, cleanup_list*) noexcept { return value.pin(object); }
};

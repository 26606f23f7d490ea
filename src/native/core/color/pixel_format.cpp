#include "core/color/pixel_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "core/base/errors.h"
#include "core/color/pixel_split.h"

namespace stoker {
namespace {

template <typename T>
using Table = std::array<std::array<T, 256>, kRgbBytes>;

// The values lie apart from the pixels, which compilers cannot know by themselves.
template <typename T>
void write_nhwc(const Table<T>& table, RgbSlot rows, Extent size, T* out) {
  const size_t width = static_cast<size_t>(size.width) * kRgbBytes;
  for (int32_t y = 0; y < size.height; ++y, out += width) {
    const uint8_t* __restrict from = rows.row(y);
    T* __restrict to = out;
    for (size_t at = 0; at < width; at += kRgbBytes) {
      for (size_t c = 0; c < kRgbBytes; ++c) to[at + c] = table[c][from[at + c]];
    }
  }
}

template <typename T>
void write_nchw(const Table<T>& table, RgbSlot rows, Extent size, T* out) {
  const auto width = static_cast<size_t>(size.width), plane = width * static_cast<size_t>(size.height);
  for (int32_t y = 0; y < size.height; ++y, out += width) {
    const uint8_t* __restrict from = rows.row(y);
    T* __restrict red = out, * __restrict green = out + plane, * __restrict blue = out + 2 * plane;
    for (size_t x = 0; x < width; ++x, from += kRgbBytes) {
      red[x] = table[0][from[0]];
      green[x] = table[1][from[1]];
      blue[x] = table[2][from[2]];
    }
  }
}

void write_bytes(PixelLayout layout, RgbSlot rows, Extent size, uint8_t* out) {
  const auto width = static_cast<size_t>(size.width), plane = width * static_cast<size_t>(size.height);
  const SplitKernels& kernels = *split_kernels().front();
  for (int32_t y = 0; y < size.height; ++y) {
    if (layout == PixelLayout::kNhwc) {
      std::memcpy(out, rows.row(y), width * kRgbBytes);
      out += width * kRgbBytes;
    } else {
      kernels.split(rows.row(y), width, out, out + plane, out + 2 * plane);
      out += width;
    }
  }
}

template <typename T>
void write_values(const Table<T>& table, PixelLayout layout, RgbSlot rows, Extent size, uint8_t* out) {
  T* values = reinterpret_cast<T*>(out);
  if (layout == PixelLayout::kNhwc) return write_nhwc(table, rows, size, values);
  write_nchw(table, rows, size, values);
}

}  // namespace

uint16_t half_bits(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (magnitude == 0.0) return sign;
  if (magnitude >= 65520.0) return sign | 0x7C00;
  const int exponent = std::max(std::ilogb(magnitude), -14);  // below that the numbers are subnormal
  const auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  // A carry out of the ten bits is a carry into the exponent, which follows them.
  return static_cast<uint16_t>(sign | ((static_cast<uint32_t>(exponent + 14) << 10) + steps));
}

size_t PixelFormat::value_bytes() const {
  switch (type) {
    case PixelType::kUint8:
      return sizeof(uint8_t);
    case PixelType::kFloat16:
      return sizeof(uint16_t);
    case PixelType::kFloat32:
      break;
  }
  return sizeof(float);
}

PixelWriter::PixelWriter(const PixelFormat& format) : format_(format) {
  for (size_t c = 0; c < kRgbBytes; ++c) {
    for (size_t pixel = 0; pixel < 256; ++pixel) {
      const double value = (static_cast<double>(pixel) / 255.0 - format.mean[c]) / format.std[c];
      if (!(format.std[c] > 0.0 && std::fabs(value) <= std::numeric_limits<float>::max())) {
        throw Error(ErrorCode::kBadArgument, "mean " + std::to_string(format.mean[c]) + " and std " +
                                                 std::to_string(format.std[c]) +
                                                 " do not give finite numbers; std must be above 0");
      }
      halves_[c][pixel] = half_bits(value);
      floats_[c][pixel] = static_cast<float>(value);
    }
  }
}

void PixelWriter::write(RgbSlot rows, Extent size, uint8_t* out) const {
  switch (format_.type) {
    case PixelType::kUint8:
      return write_bytes(format_.layout, rows, size, out);
    case PixelType::kFloat16:
      return write_values(halves_, format_.layout, rows, size, out);
    case PixelType::kFloat32:
      return write_values(floats_, format_.layout, rows, size, out);
  }
}

}  // namespace stoker

#include "core/color/pixel_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/color/pixel_split.h"

namespace stoker {
namespace {

// `Sample` is uint8_t or uint16_t.
template <typename Sample>
constexpr size_t kLevels = size_t{std::numeric_limits<Sample>::max()} + 1;

template <typename Sample>
Sample sample(const uint8_t* row, size_t at) {
  Sample value;
  std::memcpy(&value, row + at * sizeof value, sizeof value);
  return value;
}

// The values lie apart from the pixels, which compilers cannot know by themselves.
template <typename Sample, size_t kChannels, typename T>
void write_nhwc(const T* __restrict table, RgbSlot rows, Extent size, T* out) {
  const size_t width = static_cast<size_t>(size.width) * kChannels;
  for (int32_t y = 0; y < size.height; ++y, out += width) {
    const uint8_t* __restrict from = rows.row(y);
    T* __restrict to = out;
    for (size_t at = 0; at < width; at += kChannels) {
      for (size_t c = 0; c < kChannels; ++c) {
        to[at + c] = table[c * kLevels<Sample> + sample<Sample>(from, at + c)];
      }
    }
  }
}

template <typename Sample, size_t kChannels, typename T>
void write_nchw(const T* __restrict table, RgbSlot rows, Extent size, T* out) {
  const auto width = static_cast<size_t>(size.width), plane = width * static_cast<size_t>(size.height);
  for (int32_t y = 0; y < size.height; ++y, out += width) {
    const uint8_t* __restrict from = rows.row(y);
    T* __restrict to = out;
    for (size_t x = 0; x < width; ++x) {
      for (size_t c = 0; c < kChannels; ++c) {
        to[c * plane + x] = table[c * kLevels<Sample> + sample<Sample>(from, x * kChannels + c)];
      }
    }
  }
}

// RGBA to a plane a channel.
void split_rgba(const uint8_t* from, size_t pixels, size_t plane, uint8_t* to) {
  for (size_t x = 0; x < pixels; ++x) {
    for (size_t c = 0; c < kRgbxBytes; ++c) to[c * plane + x] = from[x * kRgbxBytes + c];
  }
}

// One number a channel.
std::vector<double> numbers(const char* name, std::vector<double> given, double otherwise, PixelMode mode) {
  const size_t channels = channels_of(mode);
  if (given.empty()) given.assign(channels, otherwise);
  if (given.size() == channels) return given;
  throw Error(ErrorCode::kBadArgument, std::string(name) + " has " + std::to_string(given.size()) +
                                           (given.size() == 1 ? " number" : " numbers") + ", and mode " +
                                           name_of(mode) + " has " + std::to_string(channels) +
                                           (channels == 1 ? " channel" : " channels") +
                                           "; give one number a channel");
}

void check_type(PixelType type, PixelMode mode) {
  const bool deep = mode == PixelMode::kI16;
  if (type != (deep ? PixelType::kUint8 : PixelType::kUint16)) return;
  throw Error(ErrorCode::kBadArgument, std::string("dtype ") + (deep ? "uint8" : "uint16") +
                                           " does not go with mode " + name_of(mode) + ": choose " +
                                           (deep ? "uint16" : "uint8") + ", float16 or float32");
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
    case PixelType::kUint16:
    case PixelType::kFloat16:
      return sizeof(uint16_t);
    case PixelType::kFloat32:
      break;
  }
  return sizeof(float);
}

PixelWriter::PixelWriter(PixelFormat format, PixelMode mode) : format_(std::move(format)), mode_(mode) {
  check_type(format_.type, mode);
  format_.mean = numbers("mean", std::move(format_.mean), 0.0, mode);
  format_.std = numbers("std", std::move(format_.std), 1.0, mode);
  const size_t most = mode == PixelMode::kI16 ? kLevels<uint16_t> - 1 : kLevels<uint8_t> - 1;
  for (size_t c = 0; c < channels_of(mode); ++c) {
    const double mean = format_.mean[c], std = format_.std[c];
    for (size_t pixel = 0; pixel <= most; ++pixel) {
      const double value = (static_cast<double>(pixel) / static_cast<double>(most) - mean) / std;
      if (!(std > 0.0 && std::fabs(value) <= std::numeric_limits<float>::max())) {
        throw Error(ErrorCode::kBadArgument, "mean " + std::to_string(mean) + " and std " +
                                                 std::to_string(std) +
                                                 " do not give finite numbers; std must be above 0");
      }
      if (format_.type == PixelType::kFloat16) halves_.push_back(half_bits(value));
      if (format_.type == PixelType::kFloat32) floats_.push_back(static_cast<float>(value));
    }
  }
}

void PixelWriter::write(RgbSlot rows, Extent size, uint8_t* out) const {
  switch (format_.type) {
    case PixelType::kUint8:
    case PixelType::kUint16:
      return write_whole(rows, size, out);
    case PixelType::kFloat16:
      return write_values(halves_, rows, size, reinterpret_cast<uint16_t*>(out));
    case PixelType::kFloat32:
      return write_values(floats_, rows, size, reinterpret_cast<float*>(out));
  }
}

template <typename T>
void PixelWriter::write_values(const std::vector<T>& table, RgbSlot rows, Extent size, T* out) const {
  const bool planes = format_.layout == PixelLayout::kNchw;
  const T* const values = table.data();
  switch (mode_) {
    case PixelMode::kRgb:
      if (planes) return write_nchw<uint8_t, kRgbBytes>(values, rows, size, out);
      return write_nhwc<uint8_t, kRgbBytes>(values, rows, size, out);
    case PixelMode::kRgba:
      if (planes) return write_nchw<uint8_t, kRgbxBytes>(values, rows, size, out);
      return write_nhwc<uint8_t, kRgbxBytes>(values, rows, size, out);
    case PixelMode::kL:
      return write_nhwc<uint8_t, 1>(values, rows, size, out);
    case PixelMode::kI16:
      return write_nhwc<uint16_t, 1>(values, rows, size, out);
  }
}

void PixelWriter::write_whole(RgbSlot rows, Extent size, uint8_t* out) const {
  const auto width = static_cast<size_t>(size.width), plane = width * static_cast<size_t>(size.height);
  const bool planes = format_.layout == PixelLayout::kNchw && channels_of(mode_) > 1;
  const SplitKernels& kernels = *split_kernels().front();
  for (int32_t y = 0; y < size.height; ++y) {
    if (!planes) {
      std::memcpy(out, rows.row(y), width * pixel_bytes(mode_));
      out += width * pixel_bytes(mode_);
      continue;
    }
    if (mode_ == PixelMode::kRgb) {
      kernels.split(rows.row(y), width, out, out + plane, out + 2 * plane);
    } else {
      split_rgba(rows.row(y), width, plane, out);
    }
    out += width;
  }
}

}  // namespace stoker

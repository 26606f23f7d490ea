// From 8-bit RGB rows to what a model takes: type, layout, mean and standard deviation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/pixels.h"

namespace stoker {

enum class PixelType { kUint8, kFloat16, kFloat32 };
enum class PixelLayout { kNhwc, kNchw };

// Floats are (pixel / 255 - mean) / std, computed in double and rounded once to the type, halves to even.
struct PixelFormat {
  PixelType type = PixelType::kUint8;
  PixelLayout layout = PixelLayout::kNhwc;
  std::array<double, kRgbBytes> mean{0.0, 0.0, 0.0};
  std::array<double, kRgbBytes> std{1.0, 1.0, 1.0};

  size_t value_bytes() const;
  // RGB rows are what is wanted already.
  bool plain() const { return type == PixelType::kUint8 && layout == PixelLayout::kNhwc; }
};

// The bits of an IEEE 754 binary16 number; too large ones are infinite. `value` is finite.
uint16_t half_bits(double value);

// Immutable once made, so any number of threads may share one.
class PixelWriter {
 public:
  // Throws kBadArgument for a mean or a std with which values are not numbers that a float32 can hold.
  explicit PixelWriter(const PixelFormat& format);

  // Writes size.height x size.width x 3 values; `out` is aligned for them.
  void write(RgbSlot rows, Extent size, uint8_t* out) const;

 private:
  using Halves = std::array<std::array<uint16_t, 256>, kRgbBytes>;
  using Floats = std::array<std::array<float, 256>, kRgbBytes>;

  PixelFormat format_;
  Halves halves_;  // of each channel, for each pixel value
  Floats floats_;
};

}  // namespace stoker

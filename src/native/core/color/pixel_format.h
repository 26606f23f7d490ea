// From rows of pixels to what a model takes: type, layout, mean and standard deviation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/pixel_mode.h"
#include "core/base/pixels.h"

namespace stoker {

enum class PixelType { kUint8, kUint16, kFloat16, kFloat32 };
enum class PixelLayout { kNhwc, kNchw };

// Floats are (pixel / most - mean) / std, where `most` is 255, and 65,535 of kI16; computed in double and
// rounded once to the type, halves to even.
struct PixelFormat {
  PixelType type = PixelType::kUint8;
  PixelLayout layout = PixelLayout::kNhwc;
  std::vector<double> mean = {};  // of each channel; empty: 0
  std::vector<double> std = {};   // of each channel; empty: 1

  size_t value_bytes() const;
  // Whether rows of pixels have the wanted format already.
  bool plain() const {
    return (type == PixelType::kUint8 || type == PixelType::kUint16) && layout == PixelLayout::kNhwc;
  }
};

// The bits of an IEEE 754 binary16 number; too large ones are infinite. `value` is finite.
uint16_t half_bits(double value);

// Immutable once made, so any number of threads may share one.
class PixelWriter {
 public:
  // Throws kBadArgument for whole numbers that are not those of the mode (kUint16 of kI16, kUint8 of all
  // others), for more or fewer numbers of mean or std than the mode has channels, and where they make values
  // that are not numbers a float32 can hold.
  explicit PixelWriter(PixelFormat format, PixelMode mode = PixelMode::kRgb);

  // Writes size.height x size.width x channels values; `out` is aligned for them.
  void write(RgbSlot rows, Extent size, uint8_t* out) const;

 private:
  template <typename T>
  void write_values(const std::vector<T>& table, RgbSlot rows, Extent size, T* out) const;
  void write_whole(RgbSlot rows, Extent size, uint8_t* out) const;

  PixelFormat format_;
  PixelMode mode_;
  // For each value of a pixel, channel after channel; the one that `format_` wants.
  std::vector<uint16_t> halves_;
  std::vector<float> floats_;
};

}  // namespace stoker

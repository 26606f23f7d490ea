// Samples of PNG to pixels, by the rules of Pillow.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/base/pixel_mode.h"
#include "core/base/pixels.h"

namespace stoker {

// Grey of 8 bits or less and indices are both entries of a list of colours.
enum class Samples { kIndex, kGrey, kGreyAlpha, kRgb, kRgba };

// What a row of the file holds for each pixel.
struct SampleLayout {
  Samples samples = Samples::kRgb;
  unsigned sample_bits = 8;  // of kIndex 1, 2, 4 or 8, of kGrey 16, of others 8 or 16

  unsigned channels() const {
    switch (samples) {
      case Samples::kIndex:
      case Samples::kGrey:
        return 1;
      case Samples::kGreyAlpha:
        return 2;
      case Samples::kRgb:
        return 3;
      case Samples::kRgba:
        break;
    }
    return 4;
  }
  unsigned bits() const { return channels() * sample_bits; }
};

// A colour that is transparent, in 16 bits where the samples are grey of 16 bits.
using ColorKey = std::array<uint16_t, kRgbBytes>;

void write_grey(uint8_t value, uint8_t* to);

// The meaning of the samples of an image, and the mode that it is decoded to.
struct PngPixels {
  SampleLayout layout;
  std::array<std::array<uint8_t, kRgbxBytes>, 256> colors;  // of each index
  std::optional<ColorKey> clear;
  PixelMode mode = PixelMode::kRgb;

  // Whether pixels carry I;16; otherwise they are RGBX, and of kRgba with alpha.
  bool is_deep() const { return mode == PixelMode::kI16 && layout.samples == Samples::kGrey; }

  // `pixels` of a row of the file, from the pixel `first` on.
  void convert(const uint8_t* row, size_t first, size_t pixels, uint8_t* to) const;

 private:
  void indices_to_rgbx(const uint8_t* row, size_t first, size_t pixels, uint8_t* to) const;
  void to_rgbx(const uint8_t* from, size_t pixels, uint8_t* to) const;
  void add_alpha(const uint8_t* from, size_t pixels, uint8_t* to) const;
};

}  // namespace stoker

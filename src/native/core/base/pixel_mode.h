// Which channels of an image are shown, and how deep they are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/pixels.h"

namespace stoker {

// As Pillow's modes. From a decoder to the end of resampling, a pixel of any of them lies in the four bytes
// of RGBX (RgbxView): L in each of the first three, RGBA as it is, and I;16 as a uint16_t in the first two.
enum class PixelMode : uint8_t {
  kRgb,
  kL,     // grey of 8 bits
  kRgba,  // alpha is not multiplied into the colours
  kI16,   // grey of 16 bits
};

constexpr const char* name_of(PixelMode mode) {
  switch (mode) {
    case PixelMode::kRgb:
      return "RGB";
    case PixelMode::kL:
      return "L";
    case PixelMode::kRgba:
      return "RGBA";
    case PixelMode::kI16:
      break;
  }
  return "I;16";
}

constexpr size_t channels_of(PixelMode mode) {
  switch (mode) {
    case PixelMode::kRgb:
      return kRgbBytes;
    case PixelMode::kRgba:
      return kRgbxBytes;
    case PixelMode::kL:
    case PixelMode::kI16:
      break;
  }
  return 1;
}

// Of a pixel where nothing lies between pixels.
constexpr size_t pixel_bytes(PixelMode mode) {
  return mode == PixelMode::kI16 ? sizeof(uint16_t) : channels_of(mode);
}

// From RGBX to another mode. L is that of Pillow's convert("L"), and I;16 that grey, 0 to 255, as Pillow's
// convert("I;16") has it. `to` may be `from`.
void to_mode(PixelMode mode, const uint8_t* from, size_t pixels, uint8_t* to);

// Pixels end to end, or rows of them, from and to the four bytes that carry them.
void pack(PixelMode mode, const uint8_t* from, size_t pixels, uint8_t* to);
void unpack(PixelMode mode, const uint8_t* from, size_t pixels, uint8_t* to);

}  // namespace stoker

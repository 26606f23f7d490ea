#include "core/base/pixel_mode.h"

#include <bit>
#include <cstring>

#include "core/base/pack_kernels.h"

namespace stoker {
namespace {

// A pixel of RGBX as one number, red lowest, so that compilers find vectors in the loops.
static_assert(std::endian::native == std::endian::little);

uint32_t load(const uint8_t* from) {
  uint32_t pixel;
  std::memcpy(&pixel, from, sizeof pixel);
  return pixel;
}

void store(uint32_t pixel, uint8_t* to) {
  std::memcpy(to, &pixel, sizeof pixel);
}

uint32_t luma(uint32_t pixel) {
  const uint32_t red = pixel & 0xff, green = pixel >> 8 & 0xff, blue = pixel >> 16 & 0xff;
  return (red * 19595 + green * 38470 + blue * 7471 + 32768) >> 16;
}

}  // namespace

void to_mode(PixelMode mode, const uint8_t* from, size_t pixels, uint8_t* to) {
  if (pixels == 0) return;  // where there need not be memory either
  const size_t bytes = pixels * kRgbxBytes;
  switch (mode) {
    case PixelMode::kRgb:
      if (from != to) std::memcpy(to, from, bytes);
      return;
    case PixelMode::kL:
      for (size_t at = 0; at < bytes; at += kRgbxBytes) store(luma(load(from + at)) * 0x01010101, to + at);
      return;
    case PixelMode::kRgba:
      for (size_t at = 0; at < bytes; at += kRgbxBytes) store(load(from + at) | 0xff000000, to + at);
      return;
    case PixelMode::kI16:
      for (size_t at = 0; at < bytes; at += kRgbxBytes) store(luma(load(from + at)), to + at);
      return;
  }
}

void pack(PixelMode mode, const uint8_t* from, size_t pixels, uint8_t* to) {
  if (pixels == 0) return;
  const size_t bytes = pixel_bytes(mode);
  switch (mode) {
    case PixelMode::kRgb:
      pack_kernels().front()->to_rgb(from, pixels, to);
      return;
    case PixelMode::kL:
      for (size_t x = 0; x < pixels; ++x) to[x] = from[x * kRgbxBytes];
      return;
    case PixelMode::kRgba:
      std::memcpy(to, from, pixels * kRgbxBytes);
      return;
    case PixelMode::kI16:
      for (size_t x = 0; x < pixels; ++x) std::memcpy(to + x * bytes, from + x * kRgbxBytes, bytes);
      return;
  }
}

void unpack(PixelMode mode, const uint8_t* from, size_t pixels, uint8_t* to) {
  if (pixels == 0) return;
  const size_t bytes = pixel_bytes(mode);
  switch (mode) {
    case PixelMode::kRgb:
      rgb_to_rgbx(from, pixels, to);
      return;
    case PixelMode::kL:
      for (size_t x = 0; x < pixels; ++x) std::memset(to + x * kRgbxBytes, from[x], kRgbxBytes);
      return;
    case PixelMode::kRgba:
      std::memcpy(to, from, pixels * kRgbxBytes);
      return;
    case PixelMode::kI16:
      for (size_t x = 0; x < pixels; ++x) std::memcpy(to + x * kRgbxBytes, from + x * bytes, bytes);
      return;
  }
}

}  // namespace stoker

// What the targets of all formats of images ask of a decoder: the whole image, parts of it, a check, and what
// may not be a part at all.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "fuzz/geometry.h"
#include "fuzz/input.h"
#include "fuzz/invariant.h"
#include "fuzz/pixels_of.h"

namespace stoker::fuzz {

inline constexpr uint64_t kMaxPixels = 1 << 16;  // keeps one input fast

template <typename Decoder>
bool passes(std::span<const uint8_t> bytes) {
  static Decoder decoder;
  return succeeds([&] {
    decoder.open(bytes, kMaxPixels);
    decoder.check();
  });
}

// A part of the image, or all of it. Nothing where it is damaged there. `shrink` is for decoders that do.
template <typename Decoder>
std::optional<Rgb> decoded(std::span<const uint8_t> bytes, std::optional<Rect> part,
                           PixelMode mode = PixelMode::kRgb, int32_t shrink = 1) {
  static Decoder decoder;  // reused, as a loader's thread does: leftovers of an error would show
  std::optional<Rgb> pixels;
  succeeds([&] {
    const Extent size = decoder.open(bytes, kMaxPixels);
    if (!part) part = {0, 0, (size.width + shrink - 1) / shrink, (size.height + shrink - 1) / shrink};
    const Rect all{0, 0, part->width, part->height};
    if constexpr (requires { decoder.decode(*part, shrink); }) {
      pixels = cut(decoder.decode(*part, shrink), all, mode);
    } else {
      pixels = cut(decoder.decode(*part), all, mode);
    }
  });
  return pixels;
}

// Of an image that can be decoded: any numbers are a region of it, or refused.
template <typename Decoder>
void decode_any_region(std::span<const uint8_t> bytes, Input& choices, Extent size) {
  const int32_t x = some_coordinate(choices, size.width), y = some_coordinate(choices, size.height);
  const Rect region{x, y, some_coordinate(choices, size.width), some_coordinate(choices, size.height)};
  const bool inside = x >= 0 && y >= 0 && region.width > 0 && region.height > 0 &&
                      int64_t{x} + region.width <= size.width && int64_t{y} + region.height <= size.height;
  require(inside == decoded<Decoder>(bytes, region).has_value());
}

}  // namespace stoker::fuzz

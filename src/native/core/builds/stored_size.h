// The size that a recipe stores an image in.
#pragma once

#include <cstdint>

namespace stoker {

enum class StoredSizeMode {
  kShort,   // the shorter side becomes `width`
  kLong,    // the longer side
  kMax,     // the longer side, where it is longer than that
  kExact,   // width x height
  kSquare,  // the largest centred square becomes width x width
};

struct PixelSize {
  int64_t width = 0;
  int64_t height = 0;
  friend bool operator==(const PixelSize&, const PixelSize&) = default;
};

struct StoredSize {
  StoredSizeMode mode = StoredSizeMode::kExact;
  int64_t width = 0;  // both at least 1
  int64_t height = 0;

  // The stored size for an image size. If the aspect is kept, the other side is rounded to the nearest pixel,
  // halves upwards, and is at least 1.
  PixelSize target(PixelSize image) const;
};

}  // namespace stoker

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

  // What pixels of a size become. The other side of a kept aspect is rounded to the nearest pixel, halves
  // upwards, and at least 1.
  PixelSize target(PixelSize image) const;
};

}  // namespace stoker

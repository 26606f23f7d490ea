// Regions of images, as tests compare them with the same part of the whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "core/base/pixels.h"

namespace stoker::tests {

inline Rect any_region(Extent size, std::mt19937& random) {
  const auto below = [&](int32_t most) {
    return static_cast<int32_t>(random() % static_cast<unsigned>(most));
  };
  Rect region{below(size.width), below(size.height), 0, 0};
  region.width = 1 + below(size.width - region.x);
  region.height = 1 + below(size.height - region.y);
  return region;
}

// Of RGB pixels whose rows have no gaps.
inline std::vector<uint8_t> cut(const std::vector<uint8_t>& rgb, Extent size, Rect region) {
  const size_t row_bytes = static_cast<size_t>(size.width) * kRgbBytes;
  const size_t left = static_cast<size_t>(region.x) * kRgbBytes;
  std::vector<uint8_t> part;
  for (int32_t y = region.y; y < region.y + region.height; ++y) {
    const uint8_t* const row = rgb.data() + static_cast<size_t>(y) * row_bytes + left;
    part.insert(part.end(), row, row + static_cast<size_t>(region.width) * kRgbBytes);
  }
  return part;
}

inline std::vector<uint8_t> to_rgb(const RgbxView& view) {
  const auto width = static_cast<size_t>(view.size.width), height = static_cast<size_t>(view.size.height);
  std::vector<uint8_t> rgb(width * height * kRgbBytes);
  uint8_t* to = rgb.data();
  for (int32_t y = 0; y < view.size.height; ++y) {
    const uint8_t* const row = view.row(y);
    for (size_t x = 0; x < width; ++x) to = std::copy_n(row + x * kRgbxBytes, kRgbBytes, to);
  }
  return rgb;
}

}  // namespace stoker::tests

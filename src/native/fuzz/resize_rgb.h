// A planned resize from the whole input, as RGB whose rows lie `stride` bytes apart.
#pragma once

#include <cstdint>
#include <vector>

#include "core/resize/resample.h"

namespace stoker::fuzz {

inline void resize_rgb(Resampler& resampler, const uint8_t* pixels, size_t stride, bool flip, RgbSlot slot) {
  const Rect needed = resampler.needed();
  const auto width = static_cast<size_t>(needed.width), height = static_cast<size_t>(needed.height);
  std::vector<uint8_t> rgbx(width * height * kRgbxBytes + kRgbxPadding);
  const uint8_t* from =
      pixels + static_cast<size_t>(needed.y) * stride + static_cast<size_t>(needed.x) * kRgbBytes;
  for (size_t y = 0; y < height; ++y) {
    rgb_to_rgbx(from + y * stride, width, rgbx.data() + y * width * kRgbxBytes);
  }
  resampler.run({rgbx.data(), width * kRgbxBytes, {needed.width, needed.height}}, flip, slot);
}

}  // namespace stoker::fuzz

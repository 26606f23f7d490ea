// Pictures for tests, made with the encoder under test or with libjpeg by hand.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/jpeg/encode.h"

namespace stoker::tests {

// Smooth waves with some structure; `seed` changes them.
inline std::vector<uint8_t> waves(Extent size, int channels, int seed) {
  std::vector<uint8_t> pixels;
  pixels.reserve(static_cast<size_t>(size.width) * static_cast<size_t>(size.height) *
                 static_cast<size_t>(channels));
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const double v =
            std::sin((x + seed) * 0.21 + c) + std::cos((y - seed) * 0.13 * (c + 1)) + ((x ^ y) & 8) / 16.0;
        pixels.push_back(static_cast<uint8_t>(127 + 50 * v));
      }
    }
  }
  return pixels;
}

inline std::vector<uint8_t> jpeg(Extent size, JpegEncodeSpec spec = {}, int channels = 3, int seed = 0) {
  return encode_jpeg(waves(size, channels, seed).data(), size, channels, spec);
}

}  // namespace stoker::tests

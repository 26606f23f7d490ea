#include "core/resize/resample_tf1.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/errors.h"

namespace stoker {
namespace {

// Where one output coordinate lies between two input coordinates. All arithmetic is float32, as TensorFlow's
// is, and is compiled without fused multiply-add, which would round otherwise.
struct Tap {
  size_t lower;
  size_t upper;
  float part;  // of the way from lower to upper
};

std::vector<Tap> taps(int32_t in, int32_t out, bool align_corners) {
  const bool between_centres = align_corners && out > 1;
  const float scale = between_centres ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                                      : static_cast<float>(in) / static_cast<float>(out);
  std::vector<Tap> taps(static_cast<size_t>(out));
  for (int32_t i = 0; i < out; ++i) {
    const float at = static_cast<float>(i) * scale;
    const float below = std::floor(at);
    const int32_t lower = std::clamp(static_cast<int32_t>(below), 0, in - 1);
    const int32_t upper = std::min(lower + 1, in - 1);
    taps[static_cast<size_t>(i)] = {static_cast<size_t>(lower), static_cast<size_t>(upper), at - below};
  }
  return taps;
}

float mix(float from, float to, float part) {
  return from + (to - from) * part;
}

}  // namespace

void resize_tf1(const uint8_t* pixels, Extent in, Extent out, bool align_corners, RgbSlot slot) {
  constexpr int32_t kMost = 1 << 24;
  const auto [shortest, longest] = std::minmax({in.width, in.height, out.width, out.height});
  if (shortest < 1 || longest > kMost) {
    throw Error(ErrorCode::kBadArgument, "Cannot resize " + std::to_string(in.width) + " x " +
                                             std::to_string(in.height) + " to " + std::to_string(out.width) +
                                             " x " + std::to_string(out.height) + ": every side must be 1.." +
                                             std::to_string(kMost));
  }
  const std::vector<Tap> columns = taps(in.width, out.width, align_corners);
  const std::vector<Tap> rows = taps(in.height, out.height, align_corners);
  const size_t stride = static_cast<size_t>(in.width) * kRgbBytes;
  for (int32_t y = 0; y < out.height; ++y) {
    const Tap& row = rows[static_cast<size_t>(y)];
    const uint8_t* above = pixels + row.lower * stride;
    const uint8_t* below = pixels + row.upper * stride;
    uint8_t* to = slot.row(y);
    for (const Tap& column : columns) {
      const size_t left = column.lower * kRgbBytes, right = column.upper * kRgbBytes;
      for (size_t channel = 0; channel < kRgbBytes; ++channel) {
        const float top = mix(above[left + channel], above[right + channel], column.part);
        const float bottom = mix(below[left + channel], below[right + channel], column.part);
        *to++ = static_cast<uint8_t>(mix(top, bottom, row.part));
      }
    }
  }
}

}  // namespace stoker

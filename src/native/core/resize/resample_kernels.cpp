// The two passes in plain C++, which all others equal bit for bit, and which ones this processor runs.
#include <algorithm>

#include "core/base/kernels.h"
#include "core/resize/resample.h"

namespace stoker {
namespace {

constexpr int32_t kHalf = 1 << (kWeightBits - 1);

uint8_t to_byte(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

void horizontal(const TapsView& taps, RgbxView src, int32_t origin, bool flip, RgbSlot dst) {
  const size_t columns = taps.size;
  for (int32_t y = 0; y < src.size.height; ++y) {
    const uint8_t* row = src.row(y);
    uint8_t* out = dst.row(y);
    for (size_t x = 0; x < columns; ++x, out += kRgbBytes) {
      const size_t i = flip ? columns - 1 - x : x;
      const uint8_t* in = row + static_cast<size_t>(taps.first[i] - origin) * kRgbxBytes;
      const int32_t* weight = taps.weights + i * taps.stride;
      int32_t red = kHalf, green = kHalf, blue = kHalf;
      for (int32_t k = 0; k < taps.count[i]; ++k, in += kRgbxBytes) {
        red += in[0] * weight[k];
        green += in[1] * weight[k];
        blue += in[2] * weight[k];
      }
      out[0] = to_byte(red);
      out[1] = to_byte(green);
      out[2] = to_byte(blue);
    }
  }
}

void vertical(const TapsView& taps, const uint8_t* src, size_t stride, int32_t origin, size_t bytes,
              RgbSlot dst) {
  // Sums for a piece of a row at a time stay in the first-level cache.
  constexpr size_t kPiece = 1024;
  int32_t sums[kPiece];
  for (size_t y = 0; y < taps.size; ++y) {
    const uint8_t* first = src + static_cast<size_t>(taps.first[y] - origin) * stride;
    const int32_t* weight = taps.weights + y * taps.stride;
    uint8_t* out = dst.row(static_cast<int32_t>(y));
    for (size_t begin = 0; begin < bytes; begin += kPiece) {
      const size_t n = std::min(kPiece, bytes - begin);
      std::fill_n(sums, n, kHalf);
      for (int32_t k = 0; k < taps.count[y]; ++k) {
        const uint8_t* row = first + static_cast<size_t>(k) * stride + begin;
        for (size_t i = 0; i < n; ++i) sums[i] += row[i] * weight[k];
      }
      for (size_t i = 0; i < n; ++i) out[begin + i] = to_byte(sums[i]);
    }
  }
}

constexpr ResampleKernels kPortableResampleKernels{"portable", horizontal, vertical};

}  // namespace

#if defined(__x86_64__)
extern const ResampleKernels kAvx512Kernels;
extern const ResampleKernels kAvx2Kernels;
#elif defined(__aarch64__)
extern const ResampleKernels kNeonKernels;
#endif

const std::vector<const ResampleKernels*>& resample_kernels() {
  static const auto list = runnable<ResampleKernels>({
#if defined(__x86_64__)
      {InstructionSet::kAvx512, &kAvx512Kernels},
      {InstructionSet::kAvx2, &kAvx2Kernels},
#elif defined(__aarch64__)
      {InstructionSet::kNeon, &kNeonKernels},
#endif
      {InstructionSet::kAny, &kPortableResampleKernels},
  });
  return list;
}

}  // namespace stoker

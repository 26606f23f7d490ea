// The two passes with NEON. Compiled on ARM64, to nothing elsewhere. It multiplies 32-bit lanes at no extra
// cost, so weights are used whole.
#include "core/resize/resample.h"

#ifdef __aarch64__
#include <arm_neon.h>

#include <cstring>

namespace stoker {
namespace {

constexpr int32_t kHalf = 1 << (kWeightBits - 1);

// The four channels of one output pixel.
uint32_t column(const uint8_t* in, const int32_t* weight, int32_t count) {
  int32x4_t sums = vdupq_n_s32(kHalf);
  for (int32_t k = 0; k < count; ++k, in += kRgbxBytes) {
    uint32_t pixel;
    std::memcpy(&pixel, in, sizeof pixel);
    const uint16x4_t wide = vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(pixel))));
    sums = vmlaq_n_s32(sums, vreinterpretq_s32_u32(vmovl_u16(wide)), weight[k]);
  }
  const uint16x4_t words = vqmovun_s32(vshrq_n_s32(sums, kWeightBits));
  return vget_lane_u32(vreinterpret_u32_u8(vqmovn_u16(vcombine_u16(words, words))), 0);
}

void horizontal(const TapsView& taps, RgbxView src, int32_t origin, bool flip, RgbSlot dst) {
  const size_t columns = taps.size;
  for (int32_t y = 0; y < src.size.height; ++y) {
    const uint8_t* row = src.row(y);
    uint8_t* out = dst.row(y);
    for (size_t x = 0; x < columns; ++x, out += kRgbBytes) {
      const size_t i = flip ? columns - 1 - x : x;
      const uint8_t* in = row + static_cast<size_t>(taps.first[i] - origin) * kRgbxBytes;
      const uint32_t pixel = column(in, taps.weights + i * taps.stride, taps.count[i]);
      std::memcpy(out, &pixel, kRgbBytes);
    }
  }
}

// Sixteen bytes of one output row.
uint8x16_t sixteen_columns(const uint8_t* column, size_t stride, const int32_t* weight, int32_t count) {
  int32x4_t sums[4] = {vdupq_n_s32(kHalf), vdupq_n_s32(kHalf), vdupq_n_s32(kHalf), vdupq_n_s32(kHalf)};
  for (int32_t k = 0; k < count; ++k, column += stride) {
    const uint8x16_t bytes = vld1q_u8(column);
    const uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_u8(vget_high_u8(bytes));
    const uint16x4_t parts[4] = {vget_low_u16(low), vget_high_u16(low), vget_low_u16(high),
                                 vget_high_u16(high)};
    for (int i = 0; i < 4; ++i) {
      sums[i] = vmlaq_n_s32(sums[i], vreinterpretq_s32_u32(vmovl_u16(parts[i])), weight[k]);
    }
  }
  uint16x4_t words[4];
  for (int i = 0; i < 4; ++i) words[i] = vqmovun_s32(vshrq_n_s32(sums[i], kWeightBits));
  return vcombine_u8(vqmovn_u16(vcombine_u16(words[0], words[1])),
                     vqmovn_u16(vcombine_u16(words[2], words[3])));
}

void vertical(const TapsView& taps, const uint8_t* src, size_t stride, int32_t origin, size_t bytes,
              RgbSlot dst) {
  for (size_t y = 0; y < taps.size; ++y) {
    const uint8_t* column = src + static_cast<size_t>(taps.first[y] - origin) * stride;
    const int32_t* weight = taps.weights + y * taps.stride;
    uint8_t* out = dst.row(static_cast<int32_t>(y));
    size_t at = 0;
    for (; at + 16 <= bytes; at += 16) {
      vst1q_u8(out + at, sixteen_columns(column + at, stride, weight, taps.count[y]));
    }
    if (at < bytes) {  // the source is padded, the destination is not
      uint8_t rest[16];
      vst1q_u8(rest, sixteen_columns(column + at, stride, weight, taps.count[y]));
      std::memcpy(out + at, rest, bytes - at);
    }
  }
}

}  // namespace

extern const ResampleKernels kNeonKernels;
const ResampleKernels kNeonKernels{"neon", horizontal, vertical};

}  // namespace stoker
#endif

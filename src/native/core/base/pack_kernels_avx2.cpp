// RGBX pixels to RGB with byte shuffles. Compiled with -mavx2 on x86-64, to nothing elsewhere.
#include "core/base/pack_kernels.h"

#ifdef __AVX2__
#include <immintrin.h>

namespace stoker {
namespace {

constexpr size_t kFrom = 4, kTo = 3;  // bytes of a pixel
constexpr size_t kPixels = 8;

// Each half packs its four pixels into 12 bytes, then both close up. What is stored behind them is undefined,
// and the next pixels come over it.
void to_rgb(const uint8_t* rgbx, size_t pixels, uint8_t* rgb) {
  const __m256i pack = _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 0, 1, 2, 4, 5,
                                        6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  const __m256i close_up = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7);
  size_t at = 0;
  for (; (pixels - at) * kTo >= sizeof(__m256i); at += kPixels) {
    const __m256i eight = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rgbx + at * kFrom));
    const __m256i packed = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(eight, pack), close_up);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(rgb + at * kTo), packed);
  }
  for (; at < pixels; ++at) {
    for (size_t channel = 0; channel < kTo; ++channel) rgb[at * kTo + channel] = rgbx[at * kFrom + channel];
  }
}

}  // namespace

extern const PackKernels kAvx2PackKernels;
const PackKernels kAvx2PackKernels{"avx2", to_rgb};

}  // namespace stoker
#endif

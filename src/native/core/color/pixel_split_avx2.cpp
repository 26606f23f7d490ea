// RGB bytes to planes with byte shuffles. Compiled with -mavx2 on x86-64, to nothing elsewhere.
#include "core/color/pixel_split.h"

#ifdef __AVX2__
#include <immintrin.h>

namespace stoker {
namespace {

constexpr size_t kPixels = 16;

__m128i load(const uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

// 48 bytes hold 16 pixels. Each mask takes one channel's bytes out of a third of them, to where they belong;
// -1 leaves a zero.
void split(const uint8_t* rgb, size_t pixels, uint8_t* red, uint8_t* green, uint8_t* blue) {
  const __m128i masks[3][3] = {{_mm_setr_epi8(0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1),
                                _mm_setr_epi8(-1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14, -1, -1, -1, -1, -1),
                                _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1, 4, 7, 10, 13)},
                               {_mm_setr_epi8(1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1),
                                _mm_setr_epi8(-1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1),
                                _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14)},
                               {_mm_setr_epi8(2, 5, 8, 11, 14, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1),
                                _mm_setr_epi8(-1, -1, -1, -1, -1, 1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1),
                                _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15)}};
  uint8_t* const planes[3] = {red, green, blue};
  size_t at = 0;
  for (; at + kPixels <= pixels; at += kPixels) {
    const uint8_t* from = rgb + 3 * at;
    const __m128i first = load(from), second = load(from + 16), third = load(from + 32);
    for (size_t channel = 0; channel < 3; ++channel) {
      const __m128i(&mask)[3] = masks[channel];
      const __m128i ends = _mm_or_si128(_mm_shuffle_epi8(first, mask[0]), _mm_shuffle_epi8(third, mask[2]));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(planes[channel] + at),
                       _mm_or_si128(ends, _mm_shuffle_epi8(second, mask[1])));
    }
  }
  for (; at < pixels; ++at) {
    for (size_t channel = 0; channel < 3; ++channel) planes[channel][at] = rgb[3 * at + channel];
  }
}

}  // namespace

extern const SplitKernels kAvx2SplitKernels;
const SplitKernels kAvx2SplitKernels{"avx2", split};

}  // namespace stoker
#endif

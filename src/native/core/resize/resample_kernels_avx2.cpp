// The two passes with AVX2. Compiled with -mavx2 on x86-64, to nothing elsewhere.
//
// A weight has up to 24 bits, a pixel 8: their products need 32-bit lanes, and 32-bit multiplies are slow.
// Instead the weight's two 16-bit parts are multiplied separately by _mm256_madd_epi16, which also adds
// neighbouring products, so two taps cost two instructions; sum = (sum of high parts << 11) + sum of low
// parts, exactly.
#include "core/resize/resample.h"

#ifdef __AVX2__
#include <immintrin.h>

#include <cstring>

namespace stoker {
namespace {

constexpr int32_t kHalf = 1 << (kWeightBits - 1);

__m256i join(__m256i high, __m256i low) {
  return _mm256_add_epi32(_mm256_slli_epi32(high, kSplitBits), low);
}

// Two 16-bit weights repeated over a vector.
__m256i pair(const int16_t* weights) {
  int32_t both;
  std::memcpy(&both, weights, sizeof both);
  return _mm256_set1_epi32(both);
}

// Four weights as the lanes of four RGBX pixels need them: w0 w1 four times, then w2 w3 four times.
__m256i four(const int16_t* weights) {
  int32_t first, second;
  std::memcpy(&first, weights, sizeof first);
  std::memcpy(&second, weights + 2, sizeof second);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_set1_epi32(first)), _mm_set1_epi32(second), 1);
}

// Coarse weights have no low parts.
template <bool coarse>
struct Sums {
  __m256i high = _mm256_setzero_si256();
  __m256i low = _mm256_setzero_si256();

  void add(__m256i pixels, __m256i high_weights, __m256i low_weights) {
    high = _mm256_add_epi32(high, _mm256_madd_epi16(pixels, high_weights));
    if constexpr (!coarse) low = _mm256_add_epi32(low, _mm256_madd_epi16(pixels, low_weights));
  }
  __m256i total() const { return coarse ? _mm256_slli_epi32(high, kSplitBits) : join(high, low); }
};

// Four RGBX pixels as 16-bit pairs per channel: pixels 0 and 1 in the low half, 2 and 3 in the high half.
__m256i load_four(const uint8_t* in) {
  const __m256i kPairs = _mm256_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1,  //
                                          8, -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1);
  const __m128i pixels = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(pixels), kPairs);
}

__m256i round(__m256i sum) {
  return _mm256_srai_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(kHalf)), kWeightBits);
}

// The two halves' sums of row `a` added, then those of row `b`: four channels each, rounded.
template <bool coarse>
__m256i finish(const Sums<coarse>& a, const Sums<coarse>& b) {
  const __m256i first = a.total(), second = b.total();
  return round(_mm256_add_epi32(_mm256_permute2x128_si256(first, second, 0x20),
                                _mm256_permute2x128_si256(first, second, 0x31)));
}

// A pixel is stored as four bytes, the fourth of which the next column overwrites; the last column must not
// reach out of its row.
template <bool last>
void store(uint8_t* out, int pixel) {
  std::memcpy(out, &pixel, last ? 3 : 4);
}

// One column of four neighbouring rows, which share the loads of its weights.
template <bool coarse, bool last>
void column_of_four(const uint8_t* in, size_t stride, const int16_t* high, const int16_t* low, int32_t count,
                    const RgbSlot& out) {
  Sums<coarse> a, b, c, d;
  for (int32_t k = 0; k < count; k += 4, in += 4 * kRgbxBytes) {
    const __m256i high_weights = four(high + k), low_weights = four(low + k);
    a.add(load_four(in), high_weights, low_weights);
    b.add(load_four(in + stride), high_weights, low_weights);
    c.add(load_four(in + 2 * stride), high_weights, low_weights);
    d.add(load_four(in + 3 * stride), high_weights, low_weights);
  }
  // Saturating packs clamp to 0..255. They work within halves: a and c end up in the lower, b and d in the
  // upper.
  const __m256i words = _mm256_packs_epi32(finish(a, b), finish(c, d));
  const __m256i bytes = _mm256_packus_epi16(words, words);
  const __m128i lower = _mm256_castsi256_si128(bytes), upper = _mm256_extracti128_si256(bytes, 1);
  store<last>(out.row(0), _mm_cvtsi128_si32(lower));
  store<last>(out.row(1), _mm_cvtsi128_si32(upper));
  store<last>(out.row(2), _mm_extract_epi32(lower, 1));
  store<last>(out.row(3), _mm_extract_epi32(upper, 1));
}

template <bool coarse, bool last>
void column_of_one(const uint8_t* in, const int16_t* high, const int16_t* low, int32_t count, uint8_t* out) {
  Sums<coarse> sums;
  for (int32_t k = 0; k < count; k += 4, in += 4 * kRgbxBytes)
    sums.add(load_four(in), four(high + k), four(low + k));
  const __m256i words = _mm256_packs_epi32(finish(sums, sums), _mm256_setzero_si256());
  store<last>(out, _mm_cvtsi128_si32(_mm_packus_epi16(_mm256_castsi256_si128(words), _mm_setzero_si128())));
}

template <bool coarse>
void all_columns(const TapsView& taps, RgbxView src, int32_t origin, bool flip, RgbSlot dst) {
  const size_t columns = taps.size;
  const int32_t quads = src.size.height / 4 * 4;
  for (int32_t y = 0; y < src.size.height; y += y < quads ? 4 : 1) {
    const uint8_t* row = src.row(y);
    for (size_t x = 0; x < columns; ++x) {
      const size_t i = flip ? columns - 1 - x : x;
      const uint8_t* in = row + static_cast<size_t>(taps.first[i] - origin) * kRgbxBytes;
      const int16_t *high = taps.high + i * taps.stride, *low = taps.low + i * taps.stride;
      const RgbSlot out{dst.row(y) + x * kRgbBytes, dst.stride};
      const bool last = x + 1 == columns;
      if (y < quads) {
        (last ? column_of_four<coarse, true> : column_of_four<coarse, false>)(in, src.stride, high, low,
                                                                              taps.count[i], out);
      } else {
        (last ? column_of_one<coarse, true> : column_of_one<coarse, false>)(in, high, low, taps.count[i],
                                                                            out.data);
      }
    }
  }
}

void horizontal(const TapsView& taps, RgbxView src, int32_t origin, bool flip, RgbSlot dst) {
  (taps.coarse ? all_columns<true> : all_columns<false>)(taps, src, origin, flip, dst);
}

// Sixteen bytes of one output row, walking down the column two taps at a time.
template <bool coarse>
__m128i sixteen_columns(const uint8_t* column, size_t stride, const int16_t* high, const int16_t* low,
                        int32_t count) {
  Sums<coarse> left, right;
  for (int32_t k = 0; k < count; k += 2) {
    const __m128i above = _mm_loadu_si128(reinterpret_cast<const __m128i*>(column));
    // A lone last row is paired with itself; its partner's weight is zero.
    const uint8_t* next = k + 1 < count ? column + stride : column;
    const __m128i below = _mm_loadu_si128(reinterpret_cast<const __m128i*>(next));
    const __m256i high_weights = pair(high + k), low_weights = pair(low + k);
    left.add(_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(above, below)), high_weights, low_weights);
    right.add(_mm256_cvtepu8_epi16(_mm_unpackhi_epi8(above, below)), high_weights, low_weights);
    column += 2 * stride;
  }
  // packs works within halves; the permutation puts the four quarters back in order.
  const __m256i words =
      _mm256_permute4x64_epi64(_mm256_packs_epi32(round(left.total()), round(right.total())), 0xD8);
  return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

template <bool coarse>
void all_rows(const TapsView& taps, const uint8_t* src, size_t stride, int32_t origin, size_t bytes,
              RgbSlot dst) {
  for (size_t y = 0; y < taps.size; ++y) {
    const uint8_t* column = src + static_cast<size_t>(taps.first[y] - origin) * stride;
    const int16_t* high = taps.high + y * taps.stride;
    const int16_t* low = taps.low + y * taps.stride;
    uint8_t* out = dst.row(static_cast<int32_t>(y));
    size_t at = 0;
    for (; at + 16 <= bytes; at += 16) {
      const __m128i result = sixteen_columns<coarse>(column + at, stride, high, low, taps.count[y]);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + at), result);
    }
    if (at < bytes) {  // the source is padded, the destination is not
      uint8_t rest[16];
      const __m128i result = sixteen_columns<coarse>(column + at, stride, high, low, taps.count[y]);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), result);
      std::memcpy(out + at, rest, bytes - at);
    }
  }
}

void vertical(const TapsView& taps, const uint8_t* src, size_t stride, int32_t origin, size_t bytes,
              RgbSlot dst) {
  (taps.coarse ? all_rows<true> : all_rows<false>)(taps, src, stride, origin, bytes, dst);
}

}  // namespace

extern const ResampleKernels kAvx2Kernels;
const ResampleKernels kAvx2Kernels{"avx2", horizontal, vertical};

}  // namespace stoker
#endif

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

constexpr size_t kColumns = 4;  // whose pixels are stored together

// Two 16-bit weights repeated over a vector.
__m256i pair(const int16_t* weights) {
  int32_t both;
  std::memcpy(&both, weights, sizeof both);
  return _mm256_set1_epi32(both);
}

// Coarse weights have no low parts.
template <bool coarse>
struct Sums {
  __m256i high = _mm256_setzero_si256();
  __m256i low = _mm256_set1_epi32(kHalf);

  void add(__m256i pixels, __m256i high_weights, __m256i low_weights) {
    high = _mm256_add_epi32(high, _mm256_madd_epi16(pixels, high_weights));
    if constexpr (!coarse) low = _mm256_add_epi32(low, _mm256_madd_epi16(pixels, low_weights));
  }
  // Rounded. What packs it clamps it to 0..255.
  __m256i total() const {
    return _mm256_srai_epi32(_mm256_add_epi32(_mm256_slli_epi32(high, kSplitBits), low), kWeightBits);
  }
};

__m256i pack(__m256i a, __m256i b, __m256i c, __m256i d) {
  return _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
}

// Four pixels of each of two rows, one row in either half.
__m256i load_four(const uint8_t* upper, const uint8_t* lower) {
  return _mm256_inserti128_si256(
      _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(upper))),
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(lower)), 1);
}

// An output column of rows 0 and 1 in `a`, of rows 2 and 3 in `b`: four channels in either half. With `few`
// there are no more than two taps.
template <bool coarse, bool few>
void column(const uint8_t* const rows[kRowGroup], size_t at, const int16_t* high, const int16_t* low,
            int32_t count, __m256i& a, __m256i& b) {
  // Of four RGBX pixels the first two, or the last two, as 16-bit pairs for each channel.
  const __m256i kFirst =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1));
  const __m256i kLast = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(8, -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1));
  Sums<coarse> above, below;
  for (int32_t k = 0; k < count; k += 4, at += 4 * kRgbxBytes) {
    const __m256i upper = load_four(rows[0] + at, rows[1] + at),
                  lower = load_four(rows[2] + at, rows[3] + at);
    above.add(_mm256_shuffle_epi8(upper, kFirst), pair(high + k), pair(low + k));
    below.add(_mm256_shuffle_epi8(lower, kFirst), pair(high + k), pair(low + k));
    if constexpr (!few) {
      above.add(_mm256_shuffle_epi8(upper, kLast), pair(high + k + 2), pair(low + k + 2));
      below.add(_mm256_shuffle_epi8(lower, kLast), pair(high + k + 2), pair(low + k + 2));
    }
  }
  a = above.total();
  b = below.total();
}

template <bool whole>
void store(uint8_t* out, __m128i pixels, size_t bytes) {
  if constexpr (whole) {  // the next columns overwrite what is too much
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), pixels);
  } else {
    uint8_t all[sizeof pixels];
    std::memcpy(all, &pixels, sizeof pixels);
    std::memcpy(out, all, bytes);
  }
}

// RGB of four rows, of which there are `rows`, and of four columns, of which `bytes` are stored.
template <bool whole>
void store_rows(uint8_t* const out[kRowGroup], size_t at, __m256i upper, __m256i lower, size_t rows,
                size_t bytes) {
  store<whole>(out[0] + at, _mm256_castsi256_si128(upper), bytes);
  if (rows > 1) store<whole>(out[1] + at, _mm256_extracti128_si256(upper, 1), bytes);
  if (rows > 2) store<whole>(out[2] + at, _mm256_castsi256_si128(lower), bytes);
  if (rows > 3) store<whole>(out[3] + at, _mm256_extracti128_si256(lower, 1), bytes);
}

template <bool coarse, bool few>
void all_columns(const TapsView& taps, RgbxView src, int32_t origin, bool flip, RgbSlot dst) {
  const __m256i kWithoutX =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
  constexpr size_t kStored = kColumns * kRgbBytes;
  const size_t columns = taps.size;
  const auto height = static_cast<size_t>(src.size.height);
  for (size_t y = 0; y < height; y += kRowGroup) {
    const size_t count = height - y < kRowGroup ? height - y : kRowGroup;
    const uint8_t* rows[kRowGroup];
    uint8_t* out[kRowGroup];
    for (size_t i = 0; i < kRowGroup; ++i) {  // what is missing is the last row once more
      const auto row = static_cast<int32_t>(y + (i < count ? i : count - 1));
      rows[i] = src.row(row);
      out[i] = dst.row(row);
    }
    for (size_t x = 0; x < columns; x += kColumns) {
      __m256i upper[kColumns], lower[kColumns];
      for (size_t i = 0; i < kColumns; ++i) {
        const size_t here = x + i < columns ? x + i : columns - 1;
        const size_t tap = flip ? columns - 1 - here : here;
        column<coarse, few>(rows, static_cast<size_t>(taps.first[tap] - origin) * kRgbxBytes,
                            taps.high + tap * taps.stride, taps.low + tap * taps.stride, taps.count[tap],
                            upper[i], lower[i]);
      }
      const __m256i a = _mm256_shuffle_epi8(pack(upper[0], upper[1], upper[2], upper[3]), kWithoutX);
      const __m256i b = _mm256_shuffle_epi8(pack(lower[0], lower[1], lower[2], lower[3]), kWithoutX);
      const size_t left = (columns - x) * kRgbBytes;
      if (left >= sizeof(__m128i)) {
        store_rows<true>(out, x * kRgbBytes, a, b, count, 0);
      } else {
        store_rows<false>(out, x * kRgbBytes, a, b, count, left < kStored ? left : kStored);
      }
    }
  }
}

void horizontal(const TapsView& taps, RgbxView src, int32_t origin, bool flip, RgbSlot dst) {
  int32_t most = 0;
  for (size_t i = 0; i < taps.size; ++i) most = taps.count[i] > most ? taps.count[i] : most;
  const auto pass = taps.coarse ? (most > 2 ? all_columns<true, false> : all_columns<true, true>)
                                : (most > 2 ? all_columns<false, false> : all_columns<false, true>);
  pass(taps, src, origin, flip, dst);
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
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(left.total(), right.total()), 0xD8);
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

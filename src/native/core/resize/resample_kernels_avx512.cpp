// The two passes with AVX-512 and its byte products (VNNI). Compiled on x86-64, to nothing elsewhere.
//
// _mm512_dpbusd_epi32 multiplies bytes without sign by bytes with one, and adds four such products to each
// 32-bit lane: four taps at a time. A weight is given as three bytes (TapsView::digits), so
// sum = (sum of first << 16) + (sum of second << 8) + sum of third, exactly, as sums wrap around.
#include "core/resize/resample.h"

#ifdef __AVX512VNNI__
#if !defined(__clang__) && \
    __GNUC__ < 13  // takes what its own header leaves undefined on purpose for a mistake
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <cstring>

namespace stoker {
namespace {

constexpr size_t kTaps = 4;            // of a group
constexpr size_t kDigits = 3 * kTaps;  // bytes of a group's weights
constexpr size_t kRows = 4;            // in the 128-bit lanes of a vector
constexpr size_t kColumns = 4;         // whose pixels are stored together
constexpr size_t kVector = 64;         // bytes
constexpr int32_t kHalf = 1 << (kWeightBits - 1);

__m512i four_bytes(const int8_t* digits) {
  int32_t all;
  std::memcpy(&all, digits, sizeof all);
  return _mm512_set1_epi32(all);
}

// Coarse weights have no third digit.
template <bool coarse>
struct Sums {
  __m512i first = _mm512_setzero_si512();
  __m512i second = _mm512_setzero_si512();
  __m512i third = _mm512_set1_epi32(kHalf);

  void add(__m512i pixels, __m512i first_digits, __m512i second_digits, __m512i third_digits) {
    first = _mm512_dpbusd_epi32(first, pixels, first_digits);
    second = _mm512_dpbusd_epi32(second, pixels, second_digits);
    if constexpr (!coarse) third = _mm512_dpbusd_epi32(third, pixels, third_digits);
  }
  // Rounded. What packs it clamps it to 0..255.
  __m512i total() const {
    const __m512i upper = _mm512_add_epi32(_mm512_slli_epi32(first, 8), second);
    return _mm512_srai_epi32(_mm512_add_epi32(_mm512_slli_epi32(upper, 8), third), kWeightBits);
  }
};

__m512i pack(__m512i a, __m512i b, __m512i c, __m512i d) {
  return _mm512_packus_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
}

__m128i load_four(const uint8_t* in) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
}

// One output column of four rows: a lane each, of four channels.
template <bool coarse>
__m512i column(const uint8_t* const rows[kRows], size_t at, const int8_t* digits, int32_t count) {
  // Of four RGBX pixels the bytes of each channel.
  const __m512i kByChannel =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  Sums<coarse> sums;
  for (int32_t k = 0; k < count; k += kTaps, at += kTaps * kRgbxBytes, digits += kDigits) {
    __m512i pixels = _mm512_castsi128_si512(load_four(rows[0] + at));
    pixels = _mm512_inserti32x4(pixels, load_four(rows[1] + at), 1);
    pixels = _mm512_inserti32x4(pixels, load_four(rows[2] + at), 2);
    pixels = _mm512_inserti32x4(pixels, load_four(rows[3] + at), 3);
    sums.add(_mm512_shuffle_epi8(pixels, kByChannel), four_bytes(digits), four_bytes(digits + kTaps),
             four_bytes(digits + 2 * kTaps));
  }
  return sums.total();
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

// Four lanes of RGB, of four pixels each or less.
template <bool whole>
void store_rows(uint8_t* const out[kRows], size_t at, __m512i pixels, size_t rows, size_t bytes) {
  store<whole>(out[0] + at, _mm512_castsi512_si128(pixels), bytes);
  if (rows > 1) store<whole>(out[1] + at, _mm512_extracti32x4_epi32(pixels, 1), bytes);
  if (rows > 2) store<whole>(out[2] + at, _mm512_extracti32x4_epi32(pixels, 2), bytes);
  if (rows > 3) store<whole>(out[3] + at, _mm512_extracti32x4_epi32(pixels, 3), bytes);
}

template <bool coarse>
void all_columns(const TapsView& taps, RgbxView src, int32_t origin, bool flip, RgbSlot dst) {
  const __m512i kWithoutX =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
  constexpr size_t kStored = kColumns * kRgbBytes;
  const size_t columns = taps.size, stride = taps.stride * 3;
  const auto height = static_cast<size_t>(src.size.height);
  for (size_t y = 0; y < height; y += kRows) {
    const size_t count = height - y < kRows ? height - y : kRows;
    const uint8_t* rows[kRows];
    uint8_t* out[kRows];
    for (size_t i = 0; i < kRows; ++i) {  // what is missing is the last row once more
      const auto row = static_cast<int32_t>(y + (i < count ? i : count - 1));
      rows[i] = src.row(row);
      out[i] = dst.row(row);
    }
    for (size_t x = 0; x < columns; x += kColumns) {
      const auto column_at = [&](size_t i) {
        const size_t here = x + i < columns ? x + i : columns - 1;
        const size_t tap = flip ? columns - 1 - here : here;
        return column<coarse>(rows, static_cast<size_t>(taps.first[tap] - origin) * kRgbxBytes,
                              taps.digits + tap * stride, taps.count[tap]);
      };
      const __m512i pixels =
          _mm512_shuffle_epi8(pack(column_at(0), column_at(1), column_at(2), column_at(3)), kWithoutX);
      const size_t left = (columns - x) * kRgbBytes;
      if (left >= sizeof(__m128i)) {
        store_rows<true>(out, x * kRgbBytes, pixels, count, 0);
      } else {
        store_rows<false>(out, x * kRgbBytes, pixels, count, left < kStored ? left : kStored);
      }
    }
  }
}

void horizontal(const TapsView& taps, RgbxView src, int32_t origin, bool flip, RgbSlot dst) {
  (taps.coarse ? all_columns<true> : all_columns<false>)(taps, src, origin, flip, dst);
}

// 64 bytes of one output row, those of `wanted`, walking down the column four taps at a time.
template <bool coarse>
__m512i vector_of_columns(const uint8_t* at, size_t stride, const int8_t* digits, int32_t count,
                          __mmask64 wanted) {
  Sums<coarse> a, b, c, d;
  for (int32_t k = 0; k < count; k += kTaps, digits += kDigits) {
    const auto row = [&](int32_t i) {  // what is missing is the last row once more; its weight is zero
      const int32_t here = k + i < count ? k + i : count - 1;
      return _mm512_maskz_loadu_epi8(wanted, at + static_cast<size_t>(here) * stride);
    };
    const __m512i row0 = row(0), row1 = row(1), row2 = row(2), row3 = row(3);
    const __m512i lower01 = _mm512_unpacklo_epi8(row0, row1), upper01 = _mm512_unpackhi_epi8(row0, row1);
    const __m512i lower23 = _mm512_unpacklo_epi8(row2, row3), upper23 = _mm512_unpackhi_epi8(row2, row3);
    const __m512i first = four_bytes(digits), second = four_bytes(digits + kTaps),
                  third = four_bytes(digits + 2 * kTaps);
    a.add(_mm512_unpacklo_epi16(lower01, lower23), first, second, third);
    b.add(_mm512_unpackhi_epi16(lower01, lower23), first, second, third);
    c.add(_mm512_unpacklo_epi16(upper01, upper23), first, second, third);
    d.add(_mm512_unpackhi_epi16(upper01, upper23), first, second, third);
  }
  return pack(a.total(), b.total(), c.total(), d.total());
}

template <bool coarse>
void all_rows(const TapsView& taps, const uint8_t* src, size_t stride, int32_t origin, size_t bytes,
              RgbSlot dst) {
  const size_t whole = bytes / kVector * kVector;
  const __mmask64 all = ~__mmask64{0}, rest = ~(all << (bytes - whole));
  for (size_t y = 0; y < taps.size; ++y) {
    const uint8_t* column = src + static_cast<size_t>(taps.first[y] - origin) * stride;
    const int8_t* digits = taps.digits + y * taps.stride * 3;
    uint8_t* out = dst.row(static_cast<int32_t>(y));
    for (size_t at = 0; at < whole; at += kVector) {
      _mm512_storeu_si512(out + at,
                          vector_of_columns<coarse>(column + at, stride, digits, taps.count[y], all));
    }
    if (whole < bytes) {
      _mm512_mask_storeu_epi8(out + whole, rest,
                              vector_of_columns<coarse>(column + whole, stride, digits, taps.count[y], rest));
    }
  }
}

void vertical(const TapsView& taps, const uint8_t* src, size_t stride, int32_t origin, size_t bytes,
              RgbSlot dst) {
  (taps.coarse ? all_rows<true> : all_rows<false>)(taps, src, stride, origin, bytes, dst);
}

}  // namespace

extern const ResampleKernels kAvx512Kernels;
const ResampleKernels kAvx512Kernels{"avx512", horizontal, vertical};

}  // namespace stoker
#endif

// The kernels with AVX-512. Compiled on x86-64, to nothing elsewhere.
//
// As those with AVX2, on four blocks at a time, one in each 128-bit lane; products are added to sums at once
// (_mm512_dpwssd_epi32, VNNI).
#include "core/jpeg/region/plane_kernels.h"

#ifdef __AVX512VNNI__
#if !defined(__clang__) && \
    __GNUC__ < 13  // takes what its own header leaves undefined on purpose for a mistake
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <cstring>

#include "core/jpeg/region/plane_loops.h"

namespace stoker {
namespace {

constexpr size_t kTogether = 4;  // blocks

constexpr int fixed(double x) {
  return static_cast<int>(x * (1 << kFractionBits) + 0.5);
}
constexpr int kC0541 = fixed(0.541196100), kC0765 = fixed(0.765366865), kC1847 = fixed(1.847759065),
              kC1175 = fixed(1.175875602), kC1961 = fixed(1.961570560), kC0390 = fixed(0.390180644),
              kC0899 = fixed(0.899976223), kC1501 = fixed(1.501321110), kC2562 = fixed(2.562915447),
              kC3072 = fixed(3.072711026), kC2053 = fixed(2.053119869), kC0298 = fixed(0.298631336);

__m512i load(const void* at) {
  return _mm512_loadu_si512(at);
}

// Two 16-bit constants repeated over a register: the first for the lower value of each pair.
__m512i constants(int low, int high) {
  return _mm512_set1_epi32((high << 16) | (low & 0xFFFF));
}

// 32-bit values of eight columns of each block: columns 0-3 in `low`, 4-7 in `high`.
struct Wide {
  __m512i low, high;
};

// Rows a and b in pairs of values.
struct Pairs {
  __m512i low, high;
  Pairs(__m512i a, __m512i b) : low(_mm512_unpacklo_epi16(a, b)), high(_mm512_unpackhi_epi16(a, b)) {}
  // a * p + b * q
  Wide times(int p, int q) const {
    const __m512i factors = constants(p, q);
    return {_mm512_madd_epi16(low, factors), _mm512_madd_epi16(high, factors)};
  }
  // And a sum to it.
  Wide times(int p, int q, const Wide& sum) const {
    const __m512i factors = constants(p, q);
    return {_mm512_dpwssd_epi32(sum.low, low, factors), _mm512_dpwssd_epi32(sum.high, high, factors)};
  }
};

// A row times 2^13, and what rounds it when it is shifted.
template <int shift>
Wide scaled(__m512i row) {
  const __m512i zero = _mm512_setzero_si512(), half = _mm512_set1_epi32(1 << (shift - 1));
  const auto widened = [&](__m512i upper) {
    return _mm512_add_epi32(_mm512_srai_epi32(upper, 16 - kFractionBits), half);
  };
  return {widened(_mm512_unpacklo_epi16(zero, row)), widened(_mm512_unpackhi_epi16(zero, row))};
}

// Down the columns of all blocks.
template <int shift>
void pass(__m512i (&rows)[8]) {
  // The rotations, with their common factors multiplied out.
  const Pairs even(rows[2], rows[6]);
  const Wide even0 = scaled<shift>(_mm512_add_epi16(rows[0], rows[4]));
  const Wide even1 = scaled<shift>(_mm512_sub_epi16(rows[0], rows[4]));
  const Wide sums[4] = {
      even.times(kC0541 + kC0765, kC0541, even0),
      even.times(kC0541, kC0541 - kC1847, even1),
      even.times(-kC0541, kC1847 - kC0541, even1),
      even.times(-kC0541 - kC0765, -kC0541, even0),
  };
  const Pairs z(_mm512_add_epi16(rows[7], rows[3]), _mm512_add_epi16(rows[5], rows[1]));
  const Wide z3 = z.times(kC1175 - kC1961, kC1175), z4 = z.times(kC1175, kC1175 - kC0390);
  const Pairs outer(rows[7], rows[1]), inner(rows[5], rows[3]);
  const Wide odd[4] = {
      outer.times(-kC0899, kC1501 - kC0899, z4),
      inner.times(-kC2562, kC3072 - kC2562, z3),
      inner.times(kC2053 - kC2562, -kC2562, z4),
      outer.times(kC0298 - kC0899, -kC0899, z3),
  };
  for (int k = 0; k < 4; ++k) {
    const auto shifted = [](__m512i low, __m512i high) {
      return _mm512_packs_epi32(_mm512_srai_epi32(low, shift), _mm512_srai_epi32(high, shift));
    };
    rows[k] = shifted(_mm512_add_epi32(sums[k].low, odd[k].low), _mm512_add_epi32(sums[k].high, odd[k].high));
    rows[7 - k] =
        shifted(_mm512_sub_epi32(sums[k].low, odd[k].low), _mm512_sub_epi32(sums[k].high, odd[k].high));
  }
}

// Rows become columns, in each block.
void transpose(__m512i (&r)[8]) {
  __m512i a[8], b[8];
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = _mm512_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
    a[2 * i + 1] = _mm512_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    b[4 * i] = _mm512_unpacklo_epi32(a[4 * i], a[4 * i + 2]);
    b[4 * i + 1] = _mm512_unpackhi_epi32(a[4 * i], a[4 * i + 2]);
    b[4 * i + 2] = _mm512_unpacklo_epi32(a[4 * i + 1], a[4 * i + 3]);
    b[4 * i + 3] = _mm512_unpackhi_epi32(a[4 * i + 1], a[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    r[2 * i] = _mm512_unpacklo_epi64(b[i], b[i + 4]);
    r[2 * i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 4]);
  }
}

// Four rows of each block, times `quant`, side by side.
void load_rows(const int16_t* const (&blocks)[kTogether], const uint16_t* quant, __m512i* rows) {
  __m512i four[kTogether];
  for (size_t k = 0; k < kTogether; ++k) four[k] = _mm512_mullo_epi16(load(blocks[k]), load(quant));
  const __m512i upper01 = _mm512_shuffle_i64x2(four[0], four[1], 0x44);
  const __m512i upper23 = _mm512_shuffle_i64x2(four[2], four[3], 0x44);
  const __m512i lower01 = _mm512_shuffle_i64x2(four[0], four[1], 0xEE);
  const __m512i lower23 = _mm512_shuffle_i64x2(four[2], four[3], 0xEE);
  rows[0] = _mm512_shuffle_i64x2(upper01, upper23, 0x88);
  rows[1] = _mm512_shuffle_i64x2(upper01, upper23, 0xDD);
  rows[2] = _mm512_shuffle_i64x2(lower01, lower23, 0x88);
  rows[3] = _mm512_shuffle_i64x2(lower01, lower23, 0xDD);
}

// What the first pass makes of blocks whose first row is beyond 13 bits and a sign, and may be all there is.
void shift_lone_rows(const int16_t* const (&blocks)[kTogether], __m512i shifted, __m512i (&rows)[8]) {
  __mmask8 lone = 0;  // two bits a block
  for (size_t k = 0; k < kTogether; ++k) {
    if (has_one_row(blocks[k])) lone = static_cast<__mmask8>(lone | 3U << (2 * k));
  }
  for (__m512i& row : rows) row = _mm512_mask_mov_epi64(row, lone, shifted);
}

void four_blocks(const int16_t* const (&blocks)[kTogether], const uint16_t* quant, uint8_t* out,
                 size_t stride) {
  __m512i rows[8];
  load_rows(blocks, quant, rows);
  const int16_t* const lower[kTogether] = {blocks[0] + 32, blocks[1] + 32, blocks[2] + 32, blocks[3] + 32};
  load_rows(lower, quant + 32, rows + 4);
  const __m512i shifted = _mm512_slli_epi16(rows[0], kKeptBits);
  const bool kept = _mm512_cmpneq_epi16_mask(_mm512_srai_epi16(shifted, kKeptBits), rows[0]) == 0;
  pass<kFractionBits - kKeptBits>(rows);
  if (!kept) shift_lone_rows(blocks, shifted, rows);
  transpose(rows);
  pass<kFractionBits + kKeptBits + 3>(rows);
  transpose(rows);
  const __m512i middle = _mm512_set1_epi8(-128), even_first = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  for (size_t i = 0; i < 8; i += 2) {
    // packs works within lanes: rows i and i + 1 of the first block, then of the second...
    const __m512i packed = _mm512_xor_si512(_mm512_packs_epi16(rows[i], rows[i + 1]), middle);
    const __m512i sorted = _mm512_permutexvar_epi64(even_first, packed);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i * stride), _mm512_castsi512_si256(sorted));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + (i + 1) * stride),
                        _mm512_extracti64x4_epi64(sorted, 1));
  }
}

void inverse_dct(int16_t* values, size_t blocks, const uint8_t* last, const uint16_t* quant, uint8_t* out,
                 size_t stride) {
  alignas(64) int16_t nothing[64] = {};
  for (size_t i = 0; i < blocks; i += kTogether, out += 8 * kTogether) {
    const int16_t* these[kTogether];
    uint8_t any = 0;
    for (size_t k = 0; k < kTogether; ++k) {
      const bool there = i + k < blocks;
      these[k] = there ? values + (i + k) * 64 : nothing;
      any = static_cast<uint8_t>(any | (there ? last[i + k] : 0));
    }
    if (any != 0) {
      four_blocks(these, quant, out, stride);
      continue;
    }
    for (size_t k = 0; k < kTogether; ++k) {
      const int color = color_of(these[k][0], quant);
      for (size_t row = 0; row < 8; ++row) std::memset(out + row * stride + 8 * k, color, 8);
    }
  }
  std::memset(values, 0, blocks * 64 * sizeof *values);
}

// 32 pixels, as sixteen() with AVX2.
void thirty_two(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, uint8_t* out) {
  const auto words = [](const uint8_t* at) {
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  };
  const __m512i middle = _mm512_set1_epi16(128), rounding = _mm512_set1_epi16(1);
  const __m512i luma = words(y), blue = _mm512_sub_epi16(words(cb), middle),
                red = _mm512_sub_epi16(words(cr), middle);
  // (f x + 2^15) >> 16 = ((f 2x >> 16) + 1) >> 1
  const auto part = [&](__m512i x, int factor) {
    const __m512i high =
        _mm512_mulhi_epi16(_mm512_add_epi16(x, x), _mm512_set1_epi16(static_cast<int16_t>(factor)));
    return _mm512_srai_epi16(_mm512_add_epi16(high, rounding), 1);
  };
  const __m512i r = _mm512_add_epi16(luma, _mm512_add_epi16(red, part(red, 91881 - 65536)));
  const __m512i b =
      _mm512_add_epi16(luma, _mm512_add_epi16(_mm512_add_epi16(blue, blue), part(blue, 116130 - 131072)));
  const __m512i factors = constants(-22554, 65536 - 46802), half = _mm512_set1_epi32(1 << 15);
  const auto green = [&](__m512i pairs) {
    return _mm512_srai_epi32(_mm512_dpwssd_epi32(half, pairs, factors), 16);
  };
  const __m512i mixed =
      _mm512_packs_epi32(green(_mm512_unpacklo_epi16(blue, red)), green(_mm512_unpackhi_epi16(blue, red)));
  const __m512i g = _mm512_add_epi16(luma, _mm512_sub_epi16(mixed, red));
  // Bytes of 8 pixels in each lane: r and b, g and 255.
  const __m512i rb = _mm512_packus_epi16(r, b), gx = _mm512_packus_epi16(g, _mm512_set1_epi16(255));
  const __m512i rg = _mm512_unpacklo_epi8(rb, gx), bx = _mm512_unpackhi_epi8(rb, gx);
  const __m512i low = _mm512_unpacklo_epi16(rg, bx), high = _mm512_unpackhi_epi16(rg, bx);
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  _mm512_storeu_si512(out, _mm512_permutex2var_epi64(low, first, high));
  _mm512_storeu_si512(out + 64, _mm512_permutex2var_epi64(low, second, high));
}

void to_rgbx(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, size_t n, uint8_t* out) {
  for (size_t i = 0; i < n; i += 32) thirty_two(y + i, cb + i, cr + i, out + 4 * i);
}

}  // namespace

extern const PlaneKernels kAvx512PlaneKernels;
const PlaneKernels kAvx512PlaneKernels{"avx512",     inverse_dct, small_inverse_dct, double_columns,
                                       between_rows, double_both, to_rgbx,           grey_to_rgbx};

}  // namespace stoker
#endif

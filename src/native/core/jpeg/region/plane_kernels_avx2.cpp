// The kernels with AVX2. Compiled with -mavx2 on x86-64, to nothing elsewhere.
//
// The inverse DCT works on two blocks at a time, one in each half of a register, a row of eight 16-bit values
// in each half. Rotations multiply pairs of rows by pairs of constants and add (_mm256_madd_epi16), in 32
// bits.
#include "core/jpeg/region/plane_kernels.h"

#ifdef __AVX2__
#include <immintrin.h>

#include <cstring>

#include "core/jpeg/region/plane_loops.h"

namespace stoker {
namespace {

constexpr int fixed(double x) {
  return static_cast<int>(x < 0 ? x * (1 << kFractionBits) - 0.5 : x * (1 << kFractionBits) + 0.5);
}

// Two 16-bit constants repeated over a register: the first for the lower value of each pair.
__m256i constants(int low, int high) {
  return _mm256_set1_epi32((high << 16) | (low & 0xFFFF));
}

// 32-bit values of eight columns of each block: columns 0-3 in `low`, 4-7 in `high`.
struct Wide {
  __m256i low, high;
};

Wide operator+(const Wide& a, const Wide& b) {
  return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}
Wide operator-(const Wide& a, const Wide& b) {
  return {_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
}

// Rows a and b in pairs of values.
struct Pairs {
  __m256i low, high;
  Pairs(__m256i a, __m256i b) : low(_mm256_unpacklo_epi16(a, b)), high(_mm256_unpackhi_epi16(a, b)) {}
  // a * p + b * q
  Wide times(int p, int q) const {
    const __m256i factors = constants(p, q);
    return {_mm256_madd_epi16(low, factors), _mm256_madd_epi16(high, factors)};
  }
};

// A row times 2^13.
Wide scaled(__m256i row) {
  const __m256i zero = _mm256_setzero_si256();
  return {_mm256_srai_epi32(_mm256_unpacklo_epi16(zero, row), 16 - kFractionBits),
          _mm256_srai_epi32(_mm256_unpackhi_epi16(zero, row), 16 - kFractionBits)};
}

template <int shift>
__m256i rounded(const Wide& sum) {
  const __m256i half = _mm256_set1_epi32(1 << (shift - 1));
  return _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(sum.low, half), shift),
                            _mm256_srai_epi32(_mm256_add_epi32(sum.high, half), shift));
}

// Down the columns of both blocks.
template <int shift>
void pass(__m256i (&rows)[8]) {
  // The rotations, with their common factors multiplied out.
  const Pairs even(rows[2], rows[6]);
  const Wide even3 = even.times(fixed(0.541196100) + fixed(0.765366865), fixed(0.541196100));
  const Wide even2 = even.times(fixed(0.541196100), fixed(0.541196100) - fixed(1.847759065));
  const Wide even0 = scaled(_mm256_add_epi16(rows[0], rows[4]));
  const Wide even1 = scaled(_mm256_sub_epi16(rows[0], rows[4]));
  const Wide sums[4] = {even0 + even3, even1 + even2, even1 - even2, even0 - even3};

  const Pairs z(_mm256_add_epi16(rows[7], rows[3]), _mm256_add_epi16(rows[5], rows[1]));
  const Wide z3 = z.times(fixed(1.175875602) - fixed(1.961570560), fixed(1.175875602));
  const Wide z4 = z.times(fixed(1.175875602), fixed(1.175875602) - fixed(0.390180644));
  const Pairs outer(rows[7], rows[1]), inner(rows[5], rows[3]);
  const Wide odd[4] = {
      outer.times(-fixed(0.899976223), fixed(1.501321110) - fixed(0.899976223)) + z4,
      inner.times(-fixed(2.562915447), fixed(3.072711026) - fixed(2.562915447)) + z3,
      inner.times(fixed(2.053119869) - fixed(2.562915447), -fixed(2.562915447)) + z4,
      outer.times(fixed(0.298631336) - fixed(0.899976223), -fixed(0.899976223)) + z3,
  };
  for (int k = 0; k < 4; ++k) {
    rows[k] = rounded<shift>(sums[k] + odd[k]);
    rows[7 - k] = rounded<shift>(sums[k] - odd[k]);
  }
}

// Rows become columns, in each block.
void transpose(__m256i (&r)[8]) {
  __m256i a[8], b[8];
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = _mm256_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
    a[2 * i + 1] = _mm256_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    b[4 * i] = _mm256_unpacklo_epi32(a[4 * i], a[4 * i + 2]);
    b[4 * i + 1] = _mm256_unpackhi_epi32(a[4 * i], a[4 * i + 2]);
    b[4 * i + 2] = _mm256_unpacklo_epi32(a[4 * i + 1], a[4 * i + 3]);
    b[4 * i + 3] = _mm256_unpackhi_epi32(a[4 * i + 1], a[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    r[2 * i] = _mm256_unpacklo_epi64(b[i], b[i + 4]);
    r[2 * i + 1] = _mm256_unpackhi_epi64(b[i], b[i + 4]);
  }
}

// What the first pass makes of blocks whose first row is beyond 13 bits and a sign, and may be all there is.
void shift_lone_rows(const int16_t* first, const int16_t* second, __m256i shifted, __m256i (&rows)[8]) {
  const bool low = has_one_row(first), high = has_one_row(second);
  for (__m256i& row : rows) {
    if (low) row = _mm256_blend_epi32(row, shifted, 0x0F);
    if (high) row = _mm256_blend_epi32(row, shifted, 0xF0);
  }
}

// Two blocks side by side.
void two_blocks(int16_t* first, int16_t* second, const uint16_t* quant, uint8_t* out, size_t stride) {
  __m256i rows[8];
  for (int i = 0; i < 8; ++i) {
    const auto* a = reinterpret_cast<const __m128i*>(first + i * 8);
    const auto* b = reinterpret_cast<const __m128i*>(second + i * 8);
    const __m256i both =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(a)), _mm_loadu_si128(b), 1);
    const __m128i factors = _mm_loadu_si128(reinterpret_cast<const __m128i*>(quant + i * 8));
    rows[i] = _mm256_mullo_epi16(both, _mm256_broadcastsi128_si256(factors));
  }
  const __m256i shifted = _mm256_slli_epi16(rows[0], kKeptBits);
  const __m256i kept = _mm256_cmpeq_epi16(_mm256_srai_epi16(shifted, kKeptBits), rows[0]);
  pass<kFractionBits - kKeptBits>(rows);
  if (_mm256_movemask_epi8(kept) != -1) shift_lone_rows(first, second, shifted, rows);
  transpose(rows);
  pass<kFractionBits + kKeptBits + 3>(rows);
  transpose(rows);
  const __m256i middle = _mm256_set1_epi8(-128);
  for (int i = 0; i < 8; i += 2) {
    // packs works within halves: rows i and i + 1 of the first block, then of the second.
    const __m256i packed = _mm256_xor_si256(_mm256_packs_epi16(rows[i], rows[i + 1]), middle);
    const __m256i sorted = _mm256_permute4x64_epi64(packed, 0xD8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + static_cast<size_t>(i) * stride),
                     _mm256_castsi256_si128(sorted));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + static_cast<size_t>(i + 1) * stride),
                     _mm256_extracti128_si256(sorted, 1));
  }
}

void inverse_dct(int16_t* values, size_t blocks, const uint8_t* last, const uint16_t* quant, uint8_t* out,
                 size_t stride) {
  alignas(32) int16_t nothing[64] = {};
  for (size_t i = 0; i < blocks; i += 2, out += 16) {
    int16_t* first = values + i * 64;
    const bool lone = i + 1 == blocks;
    if ((last[i] | (lone ? 0 : last[i + 1])) == 0) {
      const __m128i colors =
          _mm_unpacklo_epi64(_mm_set1_epi8(static_cast<char>(color_of(first[0], quant))),
                             _mm_set1_epi8(static_cast<char>(lone ? 0 : color_of(first[64], quant))));
      for (size_t row = 0; row < 8; ++row) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + row * stride), colors);
      }
    } else {
      two_blocks(first, lone ? nothing : first + 64, quant, out, stride);
    }
  }
  std::memset(values, 0, blocks * 64 * sizeof *values);
}

// 16 pixels. Chroma less 128 is multiplied in 16 bits by what a factor has beyond a whole number; the sum for
// green needs 32.
void sixteen(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, uint8_t* out) {
  const auto load = [](const uint8_t* at) {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  };
  const __m256i middle = _mm256_set1_epi16(128), rounding = _mm256_set1_epi16(1);
  const __m256i luma = load(y), blue = _mm256_sub_epi16(load(cb), middle),
                red = _mm256_sub_epi16(load(cr), middle);
  // (f x + 2^15) >> 16 = ((f 2x >> 16) + 1) >> 1
  const auto part = [&](__m256i x, int factor) {
    const __m256i high =
        _mm256_mulhi_epi16(_mm256_add_epi16(x, x), _mm256_set1_epi16(static_cast<int16_t>(factor)));
    return _mm256_srai_epi16(_mm256_add_epi16(high, rounding), 1);
  };
  const __m256i r = _mm256_add_epi16(luma, _mm256_add_epi16(red, part(red, 91881 - 65536)));
  const __m256i b =
      _mm256_add_epi16(luma, _mm256_add_epi16(_mm256_add_epi16(blue, blue), part(blue, 116130 - 131072)));
  const __m256i factors = constants(-22554, 65536 - 46802), half = _mm256_set1_epi32(1 << 15);
  const auto green = [&](__m256i pairs) {
    return _mm256_srai_epi32(_mm256_add_epi32(_mm256_madd_epi16(pairs, factors), half), 16);
  };
  const __m256i mixed =
      _mm256_packs_epi32(green(_mm256_unpacklo_epi16(blue, red)), green(_mm256_unpackhi_epi16(blue, red)));
  const __m256i g = _mm256_add_epi16(luma, _mm256_sub_epi16(mixed, red));
  // Bytes of 8 pixels in each half: r and b, g and 255.
  const __m256i rb = _mm256_packus_epi16(r, b), gx = _mm256_packus_epi16(g, _mm256_set1_epi16(255));
  const __m256i rg = _mm256_unpacklo_epi8(rb, gx), bx = _mm256_unpackhi_epi8(rb, gx);
  const __m256i low = _mm256_unpacklo_epi16(rg, bx), high = _mm256_unpackhi_epi16(rg, bx);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_permute2x128_si256(low, high, 0x20));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 32), _mm256_permute2x128_si256(low, high, 0x31));
}

void to_rgbx(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, size_t n, uint8_t* out) {
  for (size_t i = 0; i < n; i += 16) sixteen(y + i, cb + i, cr + i, out + 4 * i);
}

}  // namespace

extern const PlaneKernels kAvx2PlaneKernels;
const PlaneKernels kAvx2PlaneKernels{"avx2",       inverse_dct, small_inverse_dct, double_columns,
                                     between_rows, double_both, to_rgbx,           grey_to_rgbx};

}  // namespace stoker
#endif

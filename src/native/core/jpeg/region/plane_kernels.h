// From coefficients to pixels: the inverse DCT, chroma upsampling and colour conversion of libjpeg, bit for
// bit.
//
// Sources of the arithmetic: the accurate integer DCT is that of C. Loeffler, A. Ligtenberg and G. Moschytz,
// "Practical Fast 1-D DCT Algorithms with 11 Multiplications" (ICASSP 1989), in 13 fractional bits, with 2
// more kept between the passes; upsampling weighs the nearer pixel 3/4 and the farther 1/4; colours are
// those of JFIF 1.02, in 16 fractional bits. Rounding is libjpeg's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stoker {

// All sets give the same bytes.
struct PlaneKernels {
  const char* name;
  // `blocks` blocks of 64 values in rows become 8 rows of pixels, `stride` bytes apart, and are zero then.
  // `quant` multiplies them. `last` is the position in zigzag order of each block's last value;
  // where it is 0, the value times its quant is within 13 bits and a sign.
  void (*inverse_dct)(int16_t* values, size_t blocks, const uint8_t* last, const uint16_t* quant,
                      uint8_t* out, size_t stride);
  // `blocks` blocks become `side` (4, 2 or 1) rows of pixels, `side` of each block beside those of the next,
  // and are zero then.
  void (*small_inverse_dct)(int16_t* values, size_t blocks, const uint16_t* quant, size_t side, uint8_t* out,
                            size_t stride);
  // 2n pixels from n; in[-1] and in[n] are read.
  void (*double_columns)(const uint8_t* in, size_t n, uint8_t* out);
  // n pixels between two rows, nearer to `near`; `bias` is 1 for a row above its neighbour's middle, else 2.
  void (*between_rows)(const uint8_t* near, const uint8_t* far, int bias, size_t n, uint8_t* out);
  // Both at once, rounded once: 2n pixels from n of two rows; at -1 and n they are read too.
  void (*double_both)(const uint8_t* near, const uint8_t* far, size_t n, uint8_t* out);
  // n pixels of RGBX.
  void (*to_rgbx)(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, size_t n, uint8_t* out);
  void (*grey_to_rgbx)(const uint8_t* y, size_t n, uint8_t* out);
};
// All of them read and write up to this many bytes behind the last pixel that counts.
inline constexpr size_t kPlanePadding = 64;

// Those this processor can run, the fastest first; tests run one body over all of them.
const std::vector<const PlaneKernels*>& plane_kernels();

}  // namespace stoker

// What the sets of PlaneKernels share, compiled once for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stoker {
namespace {

constexpr int clamped(int value, int low, int high) {
  return value < low ? low : value > high ? high : value;
}

// The accurate inverse DCT.

constexpr int kFractionBits = 13, kKeptBits = 2;  // of the constants, and of values between the passes

// The pixels of a block that has only a DC value.
inline uint8_t color_of(int16_t dc, const uint16_t* quant) {
  const auto value = static_cast<int16_t>(static_cast<uint16_t>(dc * quant[0] * (1 << kKeptBits)));
  return static_cast<uint8_t>(clamped((value + (1 << (kKeptBits + 2))) >> (kKeptBits + 3), -128, 127) + 128);
}

// Whether all values are in the first row. libjpeg's vector units then shift that row in place of the first
// pass, so that what is beyond 16 bits wraps around and is not clipped.
inline bool has_one_row(const int16_t* values) {
  for (int i = 8; i < 64; ++i) {
    if (values[i] != 0) return false;
  }
  return true;
}

// Blocks decoded at a half, a quarter or an eighth of their size.
//
// The side x side values of lowest frequency, times side / 8, are the DCT of the shrunken block: pixel i of
// a line is c0 / sqrt(8) + sum over k of ck cos((2i + 1) k pi / (2 side)) / 2. Integers all the way, with 13
// fractional bits and 3 between the passes: the same pixels everywhere.

constexpr int kSmallFraction = 13, kSmallKept = 3;
constexpr int32_t kFlat = 2896, kCos1 = 3784, kCos3 = 1567;  // 1/sqrt(8), cos(pi/8)/2, cos(3 pi/8)/2
constexpr int kSmallShift = kSmallFraction - kSmallKept, kSmallLastShift = kSmallFraction + kSmallKept;

// Of four lines at once; plain vectors of the compiler, whose lanes are the lines.
using Lines = int32_t __attribute__((vector_size(16)));

template <int shift>
void four_point(Lines (&v)[4], int32_t offset) {
  const Lines flat = v[0] * kFlat + offset, second = v[2] * kFlat;
  const Lines even0 = flat + second, even1 = flat - second;
  const Lines odd0 = v[1] * kCos1 + v[3] * kCos3, odd1 = v[1] * kCos3 - v[3] * kCos1;
  v[0] = (even0 + odd0) >> shift;
  v[1] = (even1 + odd1) >> shift;
  v[2] = (even1 - odd1) >> shift;
  v[3] = (even0 - odd0) >> shift;
}

// Keeps what follows within 32 bits, whatever the values were.
Lines within_words(Lines v) {
  const Lines low = Lines{} - 32768, high = Lines{} + 32767;
  v = v < low ? low : v;
  return v > high ? high : v;
}

void turn(Lines (&v)[4]) {
  const Lines a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5),
              b = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
  const Lines c = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7),
              d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
  v[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
  v[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  v[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
  v[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}

void half_block(const int16_t* values, const uint16_t* quant, uint8_t* out, size_t stride) {
  Lines v[4];
  for (int k = 0; k < 4; ++k) {
    for (int x = 0; x < 4; ++x) {
      v[k][x] = static_cast<int16_t>(static_cast<uint16_t>(values[k * 8 + x] * quant[k * 8 + x]));
    }
  }
  four_point<kSmallShift>(v, 1 << (kSmallShift - 1));
  for (Lines& row : v) row = within_words(row);
  turn(v);
  four_point<kSmallLastShift>(v, (1 << (kSmallLastShift - 1)) + (128 << kSmallLastShift));
  turn(v);
  for (size_t y = 0; y < 4; ++y) {
    for (size_t x = 0; x < 4; ++x) out[y * stride + x] = static_cast<uint8_t>(clamped(v[y][x], 0, 255));
  }
}

uint8_t small_pixel(int32_t sum) {
  constexpr int32_t kOffset = (1 << (kSmallLastShift - 1)) + (128 << kSmallLastShift);
  return static_cast<uint8_t>(clamped((sum + kOffset) >> kSmallLastShift, 0, 255));
}

int32_t small_word(int32_t sum) {
  return clamped((sum * kFlat + (1 << (kSmallShift - 1))) >> kSmallShift, -32768, 32767);
}

void quarter_block(const int16_t* values, const uint16_t* quant, uint8_t* out, size_t stride) {
  const auto at = [&](int i) {
    return int32_t{static_cast<int16_t>(static_cast<uint16_t>(values[i] * quant[i]))};
  };
  const int32_t top0 = small_word(at(0) + at(8)), top1 = small_word(at(1) + at(9));
  const int32_t below0 = small_word(at(0) - at(8)), below1 = small_word(at(1) - at(9));
  out[0] = small_pixel((top0 + top1) * kFlat);
  out[1] = small_pixel((top0 - top1) * kFlat);
  out[stride] = small_pixel((below0 + below1) * kFlat);
  out[stride + 1] = small_pixel((below0 - below1) * kFlat);
}

void eighth_block(const int16_t* values, const uint16_t* quant, uint8_t* out, size_t) {
  out[0] = small_pixel(small_word(static_cast<int16_t>(static_cast<uint16_t>(values[0] * quant[0]))) * kFlat);
}

void small_inverse_dct(int16_t* values, size_t blocks, const uint16_t* quant, size_t side, uint8_t* out,
                       size_t stride) {
  const auto inverse = side == 4 ? half_block : side == 2 ? quarter_block : eighth_block;
  for (size_t i = 0; i < blocks; ++i) inverse(values + i * 64, quant, out + i * side, stride);
  std::memset(values, 0, blocks * 64 * sizeof *values);
}

// Rows, written for the compiler to vectorise.

void double_columns(const uint8_t* __restrict in, size_t n, uint8_t* __restrict out) {
  for (size_t i = 0; i < n; ++i) {
    const auto at = static_cast<ptrdiff_t>(i);
    const int here = 3 * in[at];
    out[2 * i] = static_cast<uint8_t>((here + in[at - 1] + 1) >> 2);
    out[2 * i + 1] = static_cast<uint8_t>((here + in[at + 1] + 2) >> 2);
  }
}

void between_rows(const uint8_t* __restrict near, const uint8_t* __restrict far, int bias, size_t n,
                  uint8_t* __restrict out) {
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<uint8_t>((3 * near[i] + far[i] + bias) >> 2);
}

void double_both(const uint8_t* __restrict near, const uint8_t* __restrict far, size_t n,
                 uint8_t* __restrict out) {
  for (size_t i = 0; i < n; ++i) {
    const auto at = static_cast<ptrdiff_t>(i);
    const int here = 3 * (3 * near[at] + far[at]);
    out[2 * i] = static_cast<uint8_t>((here + 3 * near[at - 1] + far[at - 1] + 8) >> 4);
    out[2 * i + 1] = static_cast<uint8_t>((here + 3 * near[at + 1] + far[at + 1] + 7) >> 4);
  }
}

void grey_to_rgbx(const uint8_t* __restrict y, size_t n, uint8_t* __restrict out) {
  for (size_t i = 0; i < n; ++i) {
    out[4 * i] = out[4 * i + 1] = out[4 * i + 2] = out[4 * i + 3] = y[i];
  }
}

}  // namespace
}  // namespace stoker

// The kernels over rows, written for the compiler to vectorise, once for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker {
namespace {

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

// What all kernels of the accurate inverse DCT share.
#pragma once

#include <algorithm>
#include <cstdint>

namespace stoker {
namespace {

constexpr int kFractionBits = 13, kKeptBits = 2;  // of the constants, and of values between the passes

// The pixels of a block that has only a DC value.
inline uint8_t color_of(int16_t dc, const uint16_t* quant) {
  const auto value = static_cast<int16_t>(static_cast<uint16_t>(dc * quant[0] * (1 << kKeptBits)));
  return static_cast<uint8_t>(std::clamp((value + (1 << (kKeptBits + 2))) >> (kKeptBits + 3), -128, 127) +
                              128);
}

// Whether all values are in the first row. libjpeg's vector units then shift that row in place of the first
// pass, so that what is beyond 16 bits wraps around and is not clipped.
inline bool has_one_row(const int16_t* values) {
  return std::all_of(values + 8, values + 64, [](int16_t value) { return value == 0; });
}

}  // namespace
}  // namespace stoker

// What all kernels of the accurate inverse DCT share.
#pragma once

#include <algorithm>
#include <cstdint>

namespace stoker {
namespace {

constexpr int kFractionBits = 13, kKeptBits = 2;  // of the constants, and of values between the passes

// The samples of a block that has only a DC value.
inline uint8_t color_of(int16_t dc, const uint16_t* quant) {
  const auto value = static_cast<int16_t>(static_cast<uint16_t>(dc * quant[0] * (1 << kKeptBits)));
  return static_cast<uint8_t>(std::clamp((value + (1 << (kKeptBits + 2))) >> (kKeptBits + 3), -128, 127) +
                              128);
}

}  // namespace
}  // namespace stoker

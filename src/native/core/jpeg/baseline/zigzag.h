// The order in which the values of a block are stored.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker {

inline constexpr size_t kBlockValues = 64;

// Row-major places of the positions of a block, in zigzag order (ITU-T T.81 figure A.6).
inline constexpr uint8_t kZigzag[kBlockValues] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

}  // namespace stoker

// The chunks that a PNG consists of (PNG specification, 5.3).
#pragma once

#include <cstddef>

namespace stoker {

inline constexpr size_t kChunkHead = 8;  // length and type
inline constexpr size_t kChunkSum = 4;

// Deflate makes at most 258 bytes of two bits.
inline constexpr size_t kMostInflation = 1032;

}  // namespace stoker

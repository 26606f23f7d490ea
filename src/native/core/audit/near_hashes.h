// Which of many hashes of 64 bits are near one another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stoker {

// The most bits in which two hashes may differ that near_hashes() finds.
inline constexpr int kMostDistance = 11;

// The most steps that are between two hashes that near_hashes() finds. Each bit is one of four levels: strong
// and 0, 0, 1, strong and 1.
inline constexpr int kMostSteps = 24;

// Returns for each hash the first one (the smallest index) that it is near to, or near to one that is near to
// it, and so on; its own index where there is none. Two are near that differ in at most `distance` bits
// and kMostSteps steps, or do so once the bits of `mirrored` of one of them are the other way round; 0: none
// are. `strong` says which bits of each hash are. Exact. At most 2^32 - 1 hashes.
//
// Cut into p parts, two that differ in at most d bits do so in at most (d - i) / p bits of some part i,
// rounded down; else they would differ in d + 1. So for each part only those are compared that are so near in
// it: they are in blocks of those that agree in it, and `threads` look at these at once. Takes 16 bytes for
// each of many hashes beside the result, up to 512 for each of few, and time that grows with the square of
// how many there are.
std::vector<uint32_t> near_hashes(std::span<const uint64_t> hashes, std::span<const uint64_t> strong,
                                  int distance, uint64_t mirrored, size_t threads);

}  // namespace stoker

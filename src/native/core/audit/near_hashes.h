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

// Returns for each hash the smallest index in its group, or its own index if it is alone. Hashes that are
// near each other are in one group, transitively. Two are near if they differ in at most `distance` bits and
// kMostSteps steps, also after inverting the bits `mirrored` of one of them; with 0, none are. `strong` says
// which bits of each hash are strong. Exact. At most 2^32 - 1 hashes.
//
// If hashes are cut into p parts, two that differ in at most d bits differ in at most (d - i) / p bits of
// some part i, rounded down; otherwise they would differ in d + 1. So for each part, only hashes that are
// this near in it are compared: they are in blocks that agree in it, and `threads` compare blocks at once.
// Takes 16 bytes for each of many hashes beside the result, up to 512 for each of few, and time that grows
// with the square of their number.
std::vector<uint32_t> near_hashes(std::span<const uint64_t> hashes, std::span<const uint64_t> strong,
                                  int distance, uint64_t mirrored, size_t threads);

}  // namespace stoker

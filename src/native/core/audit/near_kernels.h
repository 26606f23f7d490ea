// Hashes that differ from another in few bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stoker {

inline constexpr size_t kBlockHashes = 32;
inline constexpr size_t kBlockNibbles = 12;

// 48 bits of each of 32 hashes, four at a time: an instruction looks up for all of them how many differ.
struct HashBlock {
  alignas(32) uint8_t nibbles[kBlockNibbles][kBlockHashes];
  uint32_t indices[kBlockHashes];
};

// All sets find the same.
struct NearKernels {
  const char* name;
  // Which hashes of the first block from number `at` on, where there are some, differ from the low 48 bits of
  // `wanted` in at most `distance` bits: a bit for each. `at` becomes the number of that block. 0 if there
  // are none before `end`.
  uint32_t (*next)(uint64_t wanted, const HashBlock* blocks, size_t& at, size_t end, int distance);
};

// Those this processor can run, the fastest first.
const std::vector<const NearKernels*>& near_kernels();

}  // namespace stoker

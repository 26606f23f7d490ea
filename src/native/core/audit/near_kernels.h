// Hashes that differ from another in few bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stoker {

// All sets find the same.
struct NearKernels {
  const char* name;
  // The first of `hashes` from number `from` on that differs from `wanted` in at most `distance` bits; `end`
  // if there is none before.
  size_t (*next)(uint64_t wanted, const uint64_t* hashes, size_t from, size_t end, int distance);
};

// Those this processor can run, the fastest first.
const std::vector<const NearKernels*>& near_kernels();

}  // namespace stoker

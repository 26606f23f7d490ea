#include "core/audit/near_kernels.h"

#include <algorithm>

#include "core/base/kernels.h"

namespace stoker {
namespace {

uint32_t next(uint64_t wanted, const HashBlock* blocks, size_t& at, size_t end, int distance) {
  for (; at < end; ++at) {
    uint8_t counts[kBlockHashes] = {};
    for (size_t nibble = 0; nibble < kBlockNibbles; ++nibble) {
      const auto value = static_cast<uint8_t>(wanted >> (4 * nibble) & 15);
      for (size_t i = 0; i < kBlockHashes; ++i) {
        const auto bits = static_cast<uint8_t>(blocks[at].nibbles[nibble][i] ^ value);
        const auto pairs = static_cast<uint8_t>(bits - (bits >> 1 & 5));
        counts[i] = static_cast<uint8_t>(counts[i] + (pairs & 3) + (pairs >> 2));
      }
    }
    uint8_t least = counts[0];
    for (const uint8_t count : counts) least = std::min(least, count);
    if (least > distance) continue;
    uint32_t near = 0;
    for (size_t i = 0; i < kBlockHashes; ++i) near |= uint32_t{counts[i] <= distance} << i;
    return near;
  }
  return 0;
}

constexpr NearKernels kPortableNearKernels{"portable", next};

}  // namespace

#if defined(__x86_64__)
extern const NearKernels kAvx2NearKernels;
#endif

const std::vector<const NearKernels*>& near_kernels() {
  static const auto list = runnable<NearKernels>({
#if defined(__x86_64__)
      {InstructionSet::kAvx2, &kAvx2NearKernels},
#endif
      {InstructionSet::kAny, &kPortableNearKernels},
  });
  return list;
}

}  // namespace stoker

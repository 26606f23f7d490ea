#include "core/audit/near_kernels.h"

#include <bit>

#include "core/base/kernels.h"

namespace stoker {
namespace {

size_t next(uint64_t wanted, const uint64_t* hashes, size_t from, size_t end, int distance) {
  while (from < end && std::popcount(wanted ^ hashes[from]) > distance) ++from;
  return from;
}

constexpr NearKernels kPortable{"portable", next};

}  // namespace

#if defined(__x86_64__)
extern const NearKernels kSse42NearKernels;
#endif

const std::vector<const NearKernels*>& near_kernels() {
  static const auto list = runnable<NearKernels>({
#if defined(__x86_64__)
      {InstructionSet::kSse42, &kSse42NearKernels},
#endif
      {InstructionSet::kAny, &kPortable},
  });
  return list;
}

}  // namespace stoker

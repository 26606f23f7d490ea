// Counts bits with the instruction that comes with SSE4.2. Compiled with -msse4.2 on x86-64, to nothing
// elsewhere.
#include "core/audit/near_kernels.h"

#ifdef __SSE4_2__
#include <nmmintrin.h>

namespace stoker {
namespace {

size_t next(uint64_t wanted, const uint64_t* hashes, size_t from, size_t end, int distance) {
  while (from < end && _mm_popcnt_u64(wanted ^ hashes[from]) > distance) ++from;
  return from;
}

}  // namespace

extern const NearKernels kSse42NearKernels;
const NearKernels kSse42NearKernels{"sse42", next};

}  // namespace stoker
#endif

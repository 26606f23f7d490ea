// The row filters with SSE4.2. Compiled with -msse4.2 on x86-64, to nothing elsewhere.
#include "core/png/filter_kernels.h"

#ifdef __SSE4_2__
#include "core/png/filter_loops.h"

namespace stoker {

extern const FilterKernels kSse42FilterKernels;
const FilterKernels kSse42FilterKernels{"sse42", undo};

}  // namespace stoker
#endif

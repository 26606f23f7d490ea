// Colour jitter with AVX2. Compiled with -mavx2 on x86-64, to nothing elsewhere.
#include "core/color/color_kernels.h"

#ifdef __AVX2__
#include "core/color/color_loops.h"

namespace stoker {

extern const ColorKernels kAvx2ColorKernels;
const ColorKernels kAvx2ColorKernels{"avx2", change, sum_luma};

}  // namespace stoker
#endif

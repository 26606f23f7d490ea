// Colour jitter for any processor.
#include "core/color/color_block.h"

namespace stoker {

const ColorKernels kPortableColorKernels{"portable", change, sum_luma};

}  // namespace stoker

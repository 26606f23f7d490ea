// The same loops with shifts that need no flags. Compiled with -mbmi2 on x86-64, to nothing elsewhere.
#include "core/jpeg/region/entropy_kernels.h"

#ifdef __BMI2__
#include "core/jpeg/region/entropy_loops.h"
#include "core/jpeg/region/progressive_loops.h"

namespace stoker {

extern const EntropyKernels kBmi2EntropyKernels;
const EntropyKernels kBmi2EntropyKernels{
    "bmi2",           decode_mcus,       decode_low_of_mcus, skip_mcus,
    first_dc_of_mcus, refine_dc_of_mcus, first_ac_of_blocks, refine_ac_of_blocks};

}  // namespace stoker
#endif

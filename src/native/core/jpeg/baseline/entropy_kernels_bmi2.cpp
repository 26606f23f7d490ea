// The same loops with shifts that need no flags. Compiled with -mbmi2 on x86-64, to nothing elsewhere.
#include "core/jpeg/baseline/entropy_kernels.h"

#ifdef __BMI2__
#include "core/jpeg/baseline/entropy_loops.h"

namespace stoker {

extern const EntropyKernels kBmi2EntropyKernels;
const EntropyKernels kBmi2EntropyKernels{"bmi2", decode_mcus, decode_dc_of_mcus, skip_mcus};

}  // namespace stoker
#endif

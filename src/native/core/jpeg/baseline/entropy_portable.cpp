#include "core/jpeg/baseline/entropy_loops.h"

namespace stoker {

const EntropyKernels kPortableEntropyKernels{"portable", decode_mcus, decode_dc_of_mcus, skip_mcus};

}  // namespace stoker

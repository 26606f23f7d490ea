#include "core/jpeg/entropy_block.h"

namespace stoker {

const EntropyKernels kPortableEntropyKernels{"portable", decode_mcus, skip_mcus};

}  // namespace stoker

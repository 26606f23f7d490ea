// The loops in plain C++, and which ones this processor runs.
#include "core/jpeg/region/entropy_kernels.h"

#include "core/base/kernels.h"
#include "core/jpeg/region/entropy_loops.h"
#include "core/jpeg/region/progressive_loops.h"

namespace stoker {
namespace {

constexpr EntropyKernels kPortableEntropyKernels{"portable",         decode_mcus,        decode_low_of_mcus,
                                                 skip_mcus,          first_dc_of_mcus,   refine_dc_of_mcus,
                                                 first_ac_of_blocks, refine_ac_of_blocks};

}  // namespace

#if defined(__x86_64__)
extern const EntropyKernels kBmi2EntropyKernels;
#endif

const std::vector<const EntropyKernels*>& entropy_kernels() {
  static const auto list = runnable<EntropyKernels>({
#if defined(__x86_64__)
      {InstructionSet::kBmi2, &kBmi2EntropyKernels},
#endif
      {InstructionSet::kAny, &kPortableEntropyKernels},
  });
  return list;
}

}  // namespace stoker

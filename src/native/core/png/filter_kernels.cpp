// The row filters for any processor, and which kernels this one runs.
#include "core/png/filter_kernels.h"

#include "core/base/kernels.h"
#include "core/png/filter_loops.h"

namespace stoker {
namespace {

constexpr FilterKernels kPortableFilterKernels{"portable", undo};

}  // namespace

#if defined(__x86_64__)
extern const FilterKernels kSse42FilterKernels;
#endif

const std::vector<const FilterKernels*>& filter_kernels() {
  static const auto list = runnable<FilterKernels>({
#if defined(__x86_64__)
      {InstructionSet::kSse42, &kSse42FilterKernels},
#endif
      {InstructionSet::kAny, &kPortableFilterKernels},
  });
  return list;
}

}  // namespace stoker

// Colour jitter for any processor, and which kernels this one runs.
#include "core/color/color_kernels.h"

#include "core/base/kernels.h"
#include "core/color/color_loops.h"

namespace stoker {
namespace {

constexpr ColorKernels kPortableColorKernels{"portable", change, sum_luma};

}  // namespace

#if defined(__x86_64__)
extern const ColorKernels kAvx2ColorKernels;
#endif

const std::vector<const ColorKernels*>& color_kernels() {
  static const auto list = runnable<ColorKernels>({
#if defined(__x86_64__)
      {InstructionSet::kAvx2, &kAvx2ColorKernels},
#endif
      {InstructionSet::kAny, &kPortableColorKernels},
  });
  return list;
}

}  // namespace stoker

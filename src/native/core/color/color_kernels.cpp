// Which kernels of colour jitter this processor can run.
#include "core/color/color_kernels.h"

namespace stoker {

#if defined(__x86_64__)
extern const ColorKernels kAvx2ColorKernels;
#endif

const std::vector<const ColorKernels*>& color_kernels() {
  static const std::vector<const ColorKernels*> available = [] {
    std::vector<const ColorKernels*> list;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) list.push_back(&kAvx2ColorKernels);
#endif
    list.push_back(&kPortableColorKernels);
    return list;
  }();
  return available;
}

}  // namespace stoker

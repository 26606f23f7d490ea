// Which kernels this processor can run.
#include "core/resize/resample.h"

namespace stoker {

#if defined(__x86_64__)
extern const ResampleKernels kAvx2Kernels;
#elif defined(__aarch64__)
extern const ResampleKernels kNeonKernels;
#endif

const std::vector<const ResampleKernels*>& resample_kernels() {
  static const std::vector<const ResampleKernels*> available = [] {
    std::vector<const ResampleKernels*> list;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) list.push_back(&kAvx2Kernels);
#elif defined(__aarch64__)
    list.push_back(&kNeonKernels);
#endif
    list.push_back(&kPortableKernels);
    return list;
  }();
  return available;
}

}  // namespace stoker

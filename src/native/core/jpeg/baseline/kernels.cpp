// Which kernels this processor can run.
#include "core/jpeg/baseline/entropy.h"
#include "core/jpeg/baseline/plane_kernels.h"

namespace stoker {

#if defined(__x86_64__)
extern const SampleKernels kAvx2SampleKernels;
extern const EntropyKernels kBmi2EntropyKernels;
#endif

const std::vector<const SampleKernels*>& sample_kernels() {
  static const std::vector<const SampleKernels*> available = [] {
    std::vector<const SampleKernels*> list;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) list.push_back(&kAvx2SampleKernels);
#endif
    list.push_back(&kPortableSampleKernels);
    return list;
  }();
  return available;
}

const std::vector<const EntropyKernels*>& entropy_kernels() {
  static const std::vector<const EntropyKernels*> available = [] {
    std::vector<const EntropyKernels*> list;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("bmi2")) list.push_back(&kBmi2EntropyKernels);
#endif
    list.push_back(&kPortableEntropyKernels);
    return list;
  }();
  return available;
}

}  // namespace stoker

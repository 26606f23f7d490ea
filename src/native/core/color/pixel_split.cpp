#include "core/color/pixel_split.h"

namespace stoker {
namespace {

void split(const uint8_t* __restrict rgb, size_t pixels, uint8_t* __restrict red, uint8_t* __restrict green,
           uint8_t* __restrict blue) {
  for (size_t i = 0; i < pixels; ++i) {
    red[i] = rgb[3 * i];
    green[i] = rgb[3 * i + 1];
    blue[i] = rgb[3 * i + 2];
  }
}

constexpr SplitKernel kPortable{"portable", split};

}  // namespace

#if defined(__x86_64__)
extern const SplitKernel kAvx2Split;
#endif

const std::vector<const SplitKernel*>& split_kernels() {
  static const std::vector<const SplitKernel*> available = [] {
    std::vector<const SplitKernel*> list;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) list.push_back(&kAvx2Split);
#endif
    list.push_back(&kPortable);
    return list;
  }();
  return available;
}

}  // namespace stoker

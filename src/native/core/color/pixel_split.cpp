#include "core/color/pixel_split.h"

#include "core/base/kernels.h"

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

constexpr SplitKernels kPortableSplitKernels{"portable", split};

}  // namespace

#if defined(__x86_64__)
extern const SplitKernels kAvx2SplitKernels;
#endif

const std::vector<const SplitKernels*>& split_kernels() {
  static const auto list = runnable<SplitKernels>({
#if defined(__x86_64__)
      {InstructionSet::kAvx2, &kAvx2SplitKernels},
#endif
      {InstructionSet::kAny, &kPortableSplitKernels},
  });
  return list;
}

}  // namespace stoker

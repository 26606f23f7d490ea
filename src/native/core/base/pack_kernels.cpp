#include "core/base/pack_kernels.h"

#include <cstring>

#include "core/base/kernels.h"
#include "core/base/pixels.h"

namespace stoker {
namespace {

void to_rgb(const uint8_t* rgbx, size_t pixels, uint8_t* rgb) {
  for (size_t x = 0; x < pixels; ++x) std::memcpy(rgb + x * kRgbBytes, rgbx + x * kRgbxBytes, kRgbBytes);
}

constexpr PackKernels kPortablePackKernels{"portable", to_rgb};

}  // namespace

#if defined(__x86_64__)
extern const PackKernels kAvx2PackKernels;
#endif

const std::vector<const PackKernels*>& pack_kernels() {
  static const auto list = runnable<PackKernels>({
#if defined(__x86_64__)
      {InstructionSet::kAvx2, &kAvx2PackKernels},
#endif
      {InstructionSet::kAny, &kPortablePackKernels},
  });
  return list;
}

}  // namespace stoker

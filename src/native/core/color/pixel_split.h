// RGB bytes to one plane a channel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stoker {

// The planes must not overlap the pixels. All sets give the same bytes.
struct SplitKernels {
  const char* name;
  void (*split)(const uint8_t* rgb, size_t pixels, uint8_t* red, uint8_t* green, uint8_t* blue);
};
// Those this processor can run, the fastest first.
const std::vector<const SplitKernels*>& split_kernels();

}  // namespace stoker

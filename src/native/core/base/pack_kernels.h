// RGBX pixels to RGB, end to end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stoker {

// `rgb` must not overlap `rgbx`, and nothing is written behind its last pixel. All sets give the same bytes.
struct PackKernels {
  const char* name;
  void (*to_rgb)(const uint8_t* rgbx, size_t pixels, uint8_t* rgb);
};
// Those this processor can run, the fastest first.
const std::vector<const PackKernels*>& pack_kernels();

}  // namespace stoker

// The arithmetic of colour jitter on many pixels at once, for each instruction set.
//
// Pillow's rules, `f` being the factor as a float32, in single precision, where cut() clips to 0..255 and
// drops the fraction, and L = (19595 r + 38470 g + 7471 b + 32768) / 65536, rounded down:
//   brightness  v <- cut(0 + f (v - 0))
//   contrast    v <- cut(m + f (v - m)), m the mean of L over the image, rounded to the nearest integer
//   saturation  v <- cut(L + f (v - L))
//   hue         to hue, saturation and value of 8 bits each, the hue turned modulo 256, and back
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/color/color_jitter.h"

namespace stoker {

struct ColorStep {
  ColorOp op = ColorOp::kBrightness;
  float factor = 1.0F;  // not of hue
  float grey = 0.0F;    // contrast: the mean that the colours are drawn to
  float turn = 0.0F;    // hue: 0..255, whole
};

// All sets give the same bytes. Plain pointers: see core/base/kernels.h.
struct ColorKernels {
  const char* name;
  // Carries out the steps on RGB pixels that lie one after the other, in place.
  void (*change)(const ColorStep* steps, size_t count, uint8_t* rgb, size_t pixels);
  // The sum of L over them.
  uint64_t (*sum_luma)(const uint8_t* rgb, size_t pixels);
};
// Those this processor can run, the fastest first.
const std::vector<const ColorKernels*>& color_kernels();

}  // namespace stoker

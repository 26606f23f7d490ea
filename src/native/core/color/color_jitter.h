// Changes of brightness, contrast, saturation and hue, bit-equal to Pillow 13 on 8-bit RGB.
//
// Pillow's rules (its C sources Blend.c and Convert.c, and ImageEnhance.py, read for the facts): the first
// three blend the image with black, with the grey of its mean luma, or with its own luma, in single
// precision, and cut the fraction off; hue goes through 8-bit HSV and back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/pixels.h"

namespace stoker {

enum class ColorOp : uint8_t { kBrightness, kContrast, kSaturation, kHue };
inline constexpr size_t kColorOps = 4;

// What is done to one image, in this order.
struct JitterPlan {
  std::array<ColorOp, kColorOps> order{};
  std::array<double, kColorOps> factors{};  // by operation
  size_t count = 0;
};

struct ColorKernels;

// Changes rows of RGB in place, with the fastest kernels that this processor has.
void apply_jitter(const JitterPlan& plan, RgbSlot rows, Extent size);
// The same with the given kernels; all give the same bytes.
void apply_jitter(const JitterPlan& plan, RgbSlot rows, Extent size, const ColorKernels& kernels);

}  // namespace stoker

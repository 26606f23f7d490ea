#include "core/color/color_jitter.h"

#include "core/color/color_kernels.h"

namespace stoker {
namespace {

// What kernels are called with: rows, or all pixels at once where nothing lies between the rows.
struct Stretches {
  uint8_t* first;
  size_t stride;
  size_t pixels;
  size_t count;

  Stretches(RgbSlot rows, Extent size)
      : first(rows.data),
        stride(rows.stride),
        pixels(static_cast<size_t>(size.width)),
        count(static_cast<size_t>(size.height)) {
    if (stride == pixels * kRgbBytes) {
      pixels *= count;
      count = 1;
    }
  }

  template <typename Do>
  void each(const Do& act) const {
    for (size_t i = 0; i < count; ++i) act(first + i * stride);
  }
};

// The mean of L, as ImageEnhance.Contrast rounds it.
float mean_luma(const Stretches& image, const ColorKernels& kernels) {
  uint64_t sum = 0;
  image.each([&](const uint8_t* rgb) { sum += kernels.sum_luma(rgb, image.pixels); });
  const double mean = static_cast<double>(sum) / static_cast<double>(image.pixels * image.count);
  return static_cast<float>(static_cast<int>(mean + 0.5));
}

ColorStep kernel_step(ColorOp op, double factor) {
  if (op != ColorOp::kHue) return {.op = op, .factor = static_cast<float>(factor)};
  return {.op = op, .turn = static_cast<float>(static_cast<uint8_t>(static_cast<int>(factor * 255)))};
}

}  // namespace

void apply_jitter(const JitterPlan& plan, RgbSlot rows, Extent size) {
  apply_jitter(plan, rows, size, *color_kernels().front());
}

// Contrast needs the mean of the result of the operations before it; all others need one pixel at a time, and
// are applied together while it is loaded.
void apply_jitter(const JitterPlan& plan, RgbSlot rows, Extent size, const ColorKernels& kernels) {
  if (size.width < 1 || size.height < 1) return;
  const Stretches image(rows, size);
  std::array<ColorStep, kColorOps> waiting;
  size_t count = 0;
  const auto carry_out = [&] {
    if (count == 0) return;
    image.each([&](uint8_t* rgb) { kernels.change(waiting.data(), count, rgb, image.pixels); });
    count = 0;
  };
  for (size_t i = 0; i < plan.count; ++i) {
    ColorStep step = kernel_step(plan.order[i], plan.factors[static_cast<size_t>(plan.order[i])]);
    if (step.op == ColorOp::kContrast) {
      carry_out();
      step.grey = mean_luma(image, kernels);
    }
    waiting[count++] = step;
  }
  carry_out();
}

}  // namespace stoker

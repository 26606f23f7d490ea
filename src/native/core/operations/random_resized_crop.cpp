// A random crop, with the distribution of torchvision's RandomResizedCrop, from counter-based draws.
#include <algorithm>
#include <cmath>

#include "core/operations/operation.h"

namespace stoker {
namespace {

constexpr uint32_t kAttempts = 10;

// Of width over height, or its inverse.
constexpr double kMostRatio = 100.0;

// exp() of the C library may differ in the last bit between platforms, and a crop must not. |x| is a few
// units.
double portable_exp(double x) {
  double term = 1.0, sum = 1.0;
  const double part = x / 16;  // small enough for 12 terms to reach the precision of a double
  for (int i = 1; i <= 12; ++i) {
    term *= part / i;
    sum += term;
  }
  for (int i = 0; i < 4; ++i) sum *= sum;
  return sum;
}

// 0..last, from one word.
int32_t offset(uint32_t word, int32_t last) {
  return static_cast<int32_t>(pick(word, static_cast<uint32_t>(last) + 1));
}

class RandomResizedCrop : public GeometryOperation {
 public:
  explicit RandomResizedCrop(OperationSettings& settings)
      : scale_(settings.bounds("scale", 0.0, 1.0)),
        ratio_(settings.bounds("ratio", 1.0 / kMostRatio, kMostRatio)),
        log_ratio_{std::log(ratio_.low), std::log(ratio_.high)} {}

  void plan(Extent image, const SampleRandom& random, const std::optional<ObjectBox>& /*object*/,
            TransformPlan& plan) const override {
    plan.crop = crop(image, random);
  }

 private:
  // One Philox block an attempt.
  Rect crop(Extent image, const SampleRandom& random) const {
    const double area = static_cast<double>(image.width) * image.height;
    for (uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
      const auto words = random.draw(RandomOp::kCrop, attempt);
      const double target = area * scale_.at(unit(words[0]));
      const double ratio = portable_exp(log_ratio_.at(unit(words[1])));
      const double wide = std::nearbyint(std::sqrt(target * ratio)),
                   high = std::nearbyint(std::sqrt(target / ratio));
      if (!(wide >= 1 && high >= 1 && wide <= image.width && high <= image.height)) continue;
      const auto width = static_cast<int32_t>(wide), height = static_cast<int32_t>(high);
      return {offset(words[3], image.width - width), offset(words[2], image.height - height), width, height};
    }
    return fallback(image);
  }

  // The largest centred crop whose aspect ratio is within the bounds.
  Rect fallback(Extent image) const {
    const double ratio = static_cast<double>(image.width) / image.height;
    Extent crop = image;
    if (ratio < ratio_.low) crop.height = std::clamp(half_even(image.width / ratio_.low), 1, image.height);
    if (ratio > ratio_.high) crop.width = std::clamp(half_even(image.height * ratio_.high), 1, image.width);
    return {(image.width - crop.width) / 2, (image.height - crop.height) / 2, crop.width, crop.height};
  }

  Bounds scale_;  // of the crop's share of the area
  Bounds ratio_;  // of its width over height
  Bounds log_ratio_;
};

}  // namespace

std::shared_ptr<const GeometryOperation> random_resized_crop(OperationSettings& settings) {
  return std::make_shared<RandomResizedCrop>(settings);
}

}  // namespace stoker

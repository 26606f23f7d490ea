#include "core/transforms/transform.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/base/errors.h"

namespace stoker {
namespace {

constexpr uint32_t kAttempts = 10;

// Of width over height, or its inverse; and of the logarithm of that, rounded up.
constexpr double kMostRatio = 100.0;
constexpr double kMostLogRatio = 4.61;

// Of a pixel. An edge that was a whole number of pixels is stored as a float32 fraction, which may lead back
// to a little more or less; it must not take in a column that the annotator left out.
constexpr double kEdgeTolerance = 1.0 / 1024;

// Of a box's area: a box that is all there must not be lost to the rounding of its edges.
constexpr double kShareTolerance = 1e-9;

std::string describe(Extent size) {
  return std::to_string(size.width) + " x " + std::to_string(size.height);
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kBadArgument, what);
}

void check_bounds(const std::string& name, double low, double high, double least, double most) {
  if (least <= low && low <= high && high <= most) return;  // never of what is not a number
  refuse(name + " is from " + std::to_string(low) + " to " + std::to_string(high) +
         "; it must be two numbers, the smallest and the largest, from " + std::to_string(least) + " to " +
         std::to_string(most));
}

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

// Halves go to the even neighbour, as Python's round() does.
int32_t half_even(double x) {
  return static_cast<int32_t>(std::nearbyint(x));
}

// 0..last, from one word.
int32_t pick(uint32_t word, int32_t last) {
  return static_cast<int32_t>((uint64_t{word} * (static_cast<uint64_t>(last) + 1)) >> 32);
}

// The largest centred crop whose aspect ratio is within the bounds.
Rect fallback_crop(const TransformSpec& spec, Extent image) {
  const double ratio = static_cast<double>(image.width) / image.height;
  Extent crop = image;
  if (ratio < spec.ratio_min)
    crop.height = std::clamp(half_even(image.width / spec.ratio_min), 1, image.height);
  if (ratio > spec.ratio_max)
    crop.width = std::clamp(half_even(image.height * spec.ratio_max), 1, image.width);
  return {(image.width - crop.width) / 2, (image.height - crop.height) / 2, crop.width, crop.height};
}

// The distribution of torchvision's RandomResizedCrop, from counter-based draws: one Philox block an attempt.
Rect random_crop(const TransformSpec& spec, Extent image, const SampleRandom& random) {
  const double area = static_cast<double>(image.width) * image.height;
  for (uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
    const auto words = random.draw(RandomOp::kCrop, attempt);
    const double target = area * (spec.scale_min + (spec.scale_max - spec.scale_min) * unit(words[0]));
    const double log_ratio = spec.log_ratio_min + (spec.log_ratio_max - spec.log_ratio_min) * unit(words[1]);
    const double ratio = portable_exp(log_ratio);
    const double wide = std::nearbyint(std::sqrt(target * ratio)),
                 high = std::nearbyint(std::sqrt(target / ratio));
    if (!(wide >= 1 && high >= 1 && wide <= image.width && high <= image.height)) continue;
    const auto width = static_cast<int32_t>(wide), height = static_cast<int32_t>(high);
    return {pick(words[3], image.width - width), pick(words[2], image.height - height), width, height};
  }
  return fallback_crop(spec, image);
}

// torchvision's Resize(short side) and CenterCrop.
void plan_center(const TransformSpec& spec, Extent image, TransformPlan& plan) {
  const int32_t side = std::min(image.width, image.height), length = std::max(image.width, image.height);
  const double scaled = static_cast<double>(int64_t{spec.resize} * length) / side;
  if (scaled > kMostResized) {
    throw Error(ErrorCode::kBadImage,
                "the image is " + describe(image) +
                    " (width x height), too long and narrow to resize its shorter side to " +
                    std::to_string(spec.resize) + ": leave it out, or choose a smaller resize");
  }
  const auto longer = static_cast<int32_t>(scaled);
  plan.resized = image.width <= image.height ? Extent{spec.resize, longer} : Extent{longer, spec.resize};
  plan.window = {half_even((plan.resized.width - spec.out.width) / 2.0),
                 half_even((plan.resized.height - spec.out.height) / 2.0), spec.out.width, spec.out.height};
}

// 0..last; what is not a number is 0.
int32_t clip(double at, int32_t last) {
  if (!(at > 0.0)) return 0;
  return at < last ? static_cast<int32_t>(at) : last;
}

// What of one side of a box remains: its ends, in pixels of the result, and the share of its length.
struct Interval {
  double from = 0.0;
  double to = 0.0;
  double visible = 0.0;
};

// One direction of a transform: `crop` pixels from `start` on, of an image of `length`, become `resized`
// pixels, of which `window` from `offset` on are shown.
struct Axis {
  double length;
  int32_t start, crop, resized, offset, window;

  Interval show(double low, double high) const {
    const double scale = static_cast<double>(resized) / crop;
    const double from = (low * length - start) * scale - offset,
                 to = (high * length - start) * scale - offset;
    if (!(from < to) || !std::isfinite(to - from)) return {};
    const double last = window;
    const double first_shown = std::clamp(from, 0.0, last), last_shown = std::clamp(to, 0.0, last);
    return {first_shown, last_shown, (last_shown - first_shown) / (to - from)};
  }
};

void plan_corner(const TransformSpec& spec, Extent image, TransformPlan& plan) {
  const bool exact = spec.kind == TransformKind::kExact;
  const bool fits =
      exact ? image == spec.out : image.width >= spec.out.width && image.height >= spec.out.height;
  if (!fits) {
    throw Error(ErrorCode::kBadImage, "the image is " + describe(image) +
                                          " (width x height), and the transform needs " +
                                          (exact ? "exactly " : "at least ") + describe(spec.out) +
                                          ": choose another size, or a transform that resizes");
  }
  plan.crop = {0, 0, spec.out.width, spec.out.height};
}

}  // namespace

void check_transform(const TransformSpec& spec) {
  const Extent out = spec.out;
  if (out.width < 1 || out.height < 1 || out.width > kMostSide || out.height > kMostSide) {
    refuse("A transform to " + describe(out) + " (width x height) pixels; each side must be 1.." +
           std::to_string(kMostSide));
  }
  check_bounds("hflip", spec.hflip, spec.hflip, 0.0, 1.0);
  check_jitter(spec.jitter);
  if (spec.kind == TransformKind::kRandomResizedCrop) {
    check_bounds("scale", spec.scale_min, spec.scale_max, 0.0, 1.0);
    check_bounds("ratio", spec.ratio_min, spec.ratio_max, 1.0 / kMostRatio, kMostRatio);
    check_bounds("log_ratio", spec.log_ratio_min, spec.log_ratio_max, -kMostLogRatio, kMostLogRatio);
  }
  if (spec.kind == TransformKind::kCenterCrop &&
      (spec.resize < std::max(out.width, out.height) || spec.resize > kMostSide)) {
    refuse("A centre of " + describe(out) +
           " (width x height) cannot be cut out of an image whose shorter side is " +
           std::to_string(spec.resize) + "; resize must be " +
           std::to_string(std::max(out.width, out.height)) + ".." + std::to_string(kMostSide));
  }
}

void check_mode(const TransformSpec& spec, PixelMode mode) {
  if (!spec.jitter.on() || mode == PixelMode::kRgb || mode == PixelMode::kL) return;
  refuse(std::string("Colours are changed in mode RGB and L, not in ") + name_of(mode) +
         ": choose one of them, or a transform without colour jitter");
}

Rect object_rect(const ObjectBox& box, Extent image) {
  const double width = image.width, height = image.height;
  const int32_t left = clip(std::floor(box.xmin * width + kEdgeTolerance), image.width - 1);
  const int32_t top = clip(std::floor(box.ymin * height + kEdgeTolerance), image.height - 1);
  const int32_t right = std::max(clip(std::ceil(box.xmax * width - kEdgeTolerance), image.width), left + 1);
  const int32_t bottom = std::max(clip(std::ceil(box.ymax * height - kEdgeTolerance), image.height), top + 1);
  return {left, top, right - left, bottom - top};
}

void transform_boxes(const TransformPlan& plan, Extent image, std::span<const LabelledBox> boxes,
                     double min_visible, std::vector<TransformedBox>& out) {
  const Axis across{static_cast<double>(image.width),
                    plan.crop.x,
                    plan.crop.width,
                    plan.resized.width,
                    plan.window.x,
                    plan.window.width};
  const Axis down{static_cast<double>(image.height),
                  plan.crop.y,
                  plan.crop.height,
                  plan.resized.height,
                  plan.window.y,
                  plan.window.height};
  for (size_t i = 0; i < boxes.size(); ++i) {
    const ObjectBox& box = boxes[i].box;
    Interval x = across.show(box.xmin, box.xmax), y = down.show(box.ymin, box.ymax);
    const double visible = x.visible * y.visible;
    if (!(visible > 0.0) || visible < min_visible - kShareTolerance) continue;
    if (plan.flip) x = {plan.window.width - x.to, plan.window.width - x.from, x.visible};
    out.push_back({static_cast<float>(x.from), static_cast<float>(y.from), static_cast<float>(x.to),
                   static_cast<float>(y.to), boxes[i].label, static_cast<int32_t>(i)});
  }
}

TransformPlan plan_transform(const TransformSpec& spec, Extent image, const SampleRandom& random,
                             const std::optional<ObjectBox>& object) {
  check_transform(spec);
  if (image.width < 1 || image.height < 1) refuse("An image of " + describe(image) + " has no pixels");
  TransformPlan plan{
      {0, 0, image.width, image.height}, spec.out, {0, 0, spec.out.width, spec.out.height}, false};
  if (object && spec.kind != TransformKind::kObjectCrop) {
    refuse("this transform shows whole images, not objects");
  }
  switch (spec.kind) {
    case TransformKind::kRandomResizedCrop:
      plan.crop = random_crop(spec, image, random);
      break;
    case TransformKind::kCenterCrop:
      plan_center(spec, image, plan);
      break;
    case TransformKind::kResize:
      break;
    case TransformKind::kTopLeft:
    case TransformKind::kExact:
      plan_corner(spec, image, plan);
      break;
    case TransformKind::kObjectCrop:
      if (object) plan.crop = object_rect(*object, image);
      break;
  }
  plan.flip = spec.hflip > 0.0 && unit(random.draw(RandomOp::kFlip, 0)[0]) < spec.hflip;
  return plan;
}

}  // namespace stoker

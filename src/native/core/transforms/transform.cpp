#include "core/transforms/transform.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/base/errors.h"

namespace stoker {
namespace {

// Tolerance for a box's area: a box that is entirely visible must not be lost because its edges were rounded.
constexpr double kShareTolerance = 1e-9;

// The visible part of one side of a box: its ends, in pixels of the result, and its share of the length.
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
    if (last_shown - first_shown <= kEdgeTolerance * std::max(scale, 1.0)) return {};
    return {first_shown, last_shown, (last_shown - first_shown) / (to - from)};
  }
};

}  // namespace

TransformSpec::TransformSpec(OperationSettings geometry, std::vector<OperationSettings> operations)
    : out_(geometry.size("size")), geometry_(parse_geometry(geometry)) {
  if (geometry.has("filter")) filter_ = geometry.filter("filter");
  if (geometry.has("hflip")) hflip_ = geometry.number("hflip", 0.0, 1.0);
  geometry.refuse_others();
  for (OperationSettings& settings : operations) {
    if (auto operation = parse_pixel_operation(settings)) operations_.push_back(std::move(operation));
    settings.refuse_others();
  }
}

TransformSpec TransformSpec::for_masks() const {
  TransformSpec masks = *this;
  masks.filter_ = Filter::kNearest;
  masks.operations_.clear();
  return masks;
}

void TransformSpec::check_mode(PixelMode mode) const {
  for (const auto& operation : operations_) {
    if (operation->has_meaning_in(mode)) continue;
    throw Error(ErrorCode::kBadArgument,
                std::string("An operation of the transform has no meaning in mode ") + name_of(mode) +
                    ": choose another mode, such as RGB or L, or a transform without it");
  }
}

TransformPlan TransformSpec::plan(Extent image, const SampleRandom& random,
                                  const std::optional<ObjectBox>& object) const {
  if (image.width < 1 || image.height < 1) {
    throw Error(ErrorCode::kBadArgument, "An image of " + describe(image) + " has no pixels");
  }
  if (object && !geometry_->shows_objects()) {
    throw Error(ErrorCode::kBadArgument, "this transform shows whole images, not objects");
  }
  TransformPlan plan{
      {0, 0, image.width, image.height}, out_, {0, 0, out_.width, out_.height}, false, filter_};
  geometry_->plan(image, random, object, plan);
  plan.flip = hflip_ > 0.0 && unit(random.draw(RandomOp::kFlip, 0)[0]) < hflip_;
  return plan;
}

void TransformSpec::change(const SampleRandom& random, RgbSlot rows) const {
  for (const auto& operation : operations_) operation->change(random, rows, out_);
}

std::vector<OperationStep> TransformSpec::steps(const SampleRandom& random) const {
  std::vector<OperationStep> steps;
  for (const auto& operation : operations_) {
    const auto more = operation->steps(random);
    steps.insert(steps.end(), more.begin(), more.end());
  }
  return steps;
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

}  // namespace stoker

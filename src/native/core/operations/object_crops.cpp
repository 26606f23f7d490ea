// One annotated object, resized; without an object the whole image.
#include <algorithm>
#include <cmath>

#include "core/operations/operation.h"

namespace stoker {
namespace {

// 0..last; what is not a number is 0.
int32_t clip(double at, int32_t last) {
  if (!(at > 0.0)) return 0;
  return at < last ? static_cast<int32_t>(at) : last;
}

// The smallest rectangle of whole pixels around a box, clipped to the image; at least one pixel, whatever the
// numbers are.
Rect around(const ObjectBox& box, Extent image) {
  const double width = image.width, height = image.height;
  const int32_t left = clip(std::floor(box.xmin * width + kEdgeTolerance), image.width - 1);
  const int32_t top = clip(std::floor(box.ymin * height + kEdgeTolerance), image.height - 1);
  const int32_t right = std::max(clip(std::ceil(box.xmax * width - kEdgeTolerance), image.width), left + 1);
  const int32_t bottom = std::max(clip(std::ceil(box.ymax * height - kEdgeTolerance), image.height), top + 1);
  return {left, top, right - left, bottom - top};
}

class ObjectCrops : public GeometryOperation {
 public:
  void plan(Extent image, const SampleRandom& /*random*/, const std::optional<ObjectBox>& object,
            TransformPlan& plan) const override {
    if (object) plan.crop = around(*object, image);
  }

  bool shows_objects() const override { return true; }
};

}  // namespace

std::shared_ptr<const GeometryOperation> object_crops(OperationSettings& /*settings*/) {
  return std::make_shared<ObjectCrops>();
}

}  // namespace stoker

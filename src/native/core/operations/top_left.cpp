// The top left corner, not resampled.
#include "core/base/errors.h"
#include "core/operations/operation.h"

namespace stoker {
namespace {

class TopLeft : public GeometryOperation {
 public:
  void plan(Extent image, const SampleRandom& /*random*/, const std::optional<ObjectBox>& /*object*/,
            TransformPlan& plan) const override {
    const Extent out = plan.resized;
    if (image.width < out.width || image.height < out.height) {
      throw Error(ErrorCode::kBadImage,
                  "the image is " + describe(image) + " (width x height), and the transform needs at least " +
                      describe(out) + ": choose another size, or a transform that resizes");
    }
    plan.crop = {0, 0, out.width, out.height};
  }
};

}  // namespace

std::shared_ptr<const GeometryOperation> top_left(OperationSettings& /*settings*/) {
  return std::make_shared<TopLeft>();
}

}  // namespace stoker

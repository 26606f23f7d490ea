// The whole image, which has the right size already.
#include "core/base/errors.h"
#include "core/operations/operation.h"

namespace stoker {
namespace {

class RawTensor : public GeometryOperation {
 public:
  void plan(Extent image, const SampleRandom& /*random*/, const std::optional<ObjectBox>& /*object*/,
            TransformPlan& plan) const override {
    if (image == plan.resized) return;
    throw Error(ErrorCode::kBadImage,
                "the image is " + describe(image) + " (width x height), and the transform needs exactly " +
                    describe(plan.resized) + ": choose another size, or a transform that resizes");
  }

  bool copies() const override { return true; }
};

}  // namespace

std::shared_ptr<const GeometryOperation> raw_tensor(OperationSettings& /*settings*/) {
  return std::make_shared<RawTensor>();
}

}  // namespace stoker

// The whole image, stretched.
#include "core/operations/operation.h"

namespace stoker {
namespace {

class Resize : public GeometryOperation {
 public:
  void plan(Extent /*image*/, const SampleRandom& /*random*/, const std::optional<ObjectBox>& /*object*/,
            TransformPlan& /*plan*/) const override {}
};

}  // namespace

std::shared_ptr<const GeometryOperation> resize(OperationSettings& /*settings*/) {
  return std::make_shared<Resize>();
}

}  // namespace stoker

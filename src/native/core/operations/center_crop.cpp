// torchvision's Resize(short side) and CenterCrop.
#include <algorithm>

#include "core/base/errors.h"
#include "core/operations/operation.h"

namespace stoker {
namespace {

class CenterCrop : public GeometryOperation {
 public:
  explicit CenterCrop(OperationSettings& settings)
      : out_(settings.size("size")),
        resize_(settings.whole("resize", std::max(out_.width, out_.height), kMostSide)) {}

  void plan(Extent image, const SampleRandom& /*random*/, const std::optional<ObjectBox>& /*object*/,
            TransformPlan& plan) const override {
    const int32_t side = std::min(image.width, image.height), length = std::max(image.width, image.height);
    const double scaled = static_cast<double>(int64_t{resize_} * length) / side;
    if (scaled > kMostResized) {
      throw Error(ErrorCode::kBadImage,
                  "the image is " + describe(image) +
                      " (width x height), too long and narrow to resize its shorter side to " +
                      std::to_string(resize_) + ": leave it out, or choose a smaller resize");
    }
    const auto longer = static_cast<int32_t>(scaled);
    plan.resized = image.width <= image.height ? Extent{resize_, longer} : Extent{longer, resize_};
    plan.window = {half_even((plan.resized.width - out_.width) / 2.0),
                   half_even((plan.resized.height - out_.height) / 2.0), out_.width, out_.height};
  }

 private:
  Extent out_;
  int32_t resize_;  // length of the shorter side after the resize
};

}  // namespace

std::shared_ptr<const GeometryOperation> center_crop(OperationSettings& settings) {
  return std::make_shared<CenterCrop>(settings);
}

}  // namespace stoker

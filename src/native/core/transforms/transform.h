// What a transform makes of a decoded image: which crop, resized to what size, which window of that, mirrored
// or not.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/pixel_mode.h"
#include "core/base/pixels.h"
#include "core/base/stored_image.h"
#include "core/operations/operation.h"
#include "core/order/philox.h"
#include "core/resize/resample.h"

namespace stoker {

// One geometry, and the operations on the pixels of its result: what is made of every image.
class TransformSpec {
 public:
  // Throws kBadArgument for operations that there are not, and for settings that no image can be shown with:
  // sides outside of 1 .. kMostSide, numbers out of range or not numbers, bounds in the wrong order, a centre
  // larger than what it is cut out of.
  explicit TransformSpec(OperationSettings geometry, std::vector<OperationSettings> operations = {});

  Extent out() const { return out_; }
  Filter filter() const { return filter_; }

  // Whether images of its size are shown as they are stored.
  bool copies() const { return geometry_->copies() && hflip_ == 0.0 && operations_.empty(); }
  bool changes_pixels() const { return !operations_.empty(); }
  // The same for values such as class ids, which must not be mixed: pixels are picked, and not changed.
  TransformSpec for_masks() const;

  // Throws kBadArgument for changes of pixels in a mode that has none of the kind, such as colours in RGBA.
  void check_mode(PixelMode mode) const;

  // The geometry for one image. The crop lies in the image and the window in the resized crop, whatever
  // `image` and `object` are. Throws kBadImage for an image that has not the size that the geometry needs,
  // and kBadArgument for an image without pixels and for an object in a transform that takes none.
  TransformPlan plan(Extent image, const SampleRandom& random,
                     const std::optional<ObjectBox>& object = std::nullopt) const;

  // Changes the result, rows of RGB.
  void change(const SampleRandom& random, RgbSlot rows) const;
  std::vector<OperationStep> steps(const SampleRandom& random) const;

 private:
  Extent out_;
  Filter filter_ = Filter::kNearest;
  double hflip_ = 0.0;  // probability of a mirror image
  std::shared_ptr<const GeometryOperation> geometry_;
  std::vector<std::shared_ptr<const PixelOperation>> operations_;
};

// What is left of an annotated object: its edges in pixels of the result, its class, and which
// of the sample's boxes it is.
struct TransformedBox {
  float xmin = 0.0F;
  float ymin = 0.0F;
  float xmax = 0.0F;
  float ymax = 0.0F;
  int64_t label = -1;
  int32_t object = 0;
};

// Appends what a transform shows of the boxes of an image: cropped, scaled, clipped and mirrored as its
// pixels are. A box is left out when nothing of it is in the result, but perhaps less than kEdgeTolerance, of
// a pixel of the image or of the result; when less than `min_visible` of its area is; or when its edges are
// not numbers.
void transform_boxes(const TransformPlan& plan, Extent image, std::span<const LabelledBox> boxes,
                     double min_visible, std::vector<TransformedBox>& out);

}  // namespace stoker

// What becomes of a decoded image: which crop, resized to what, which window of that, mirrored or not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/pixel_mode.h"
#include "core/base/pixels.h"
#include "core/base/stored_image.h"
#include "core/color/color_jitter.h"
#include "core/order/philox.h"
#include "core/resize/resample.h"

namespace stoker {

enum class TransformKind {
  kRandomResizedCrop,
  kCenterCrop,
  kResize,
  kTopLeft,     // the top left corner, not resampled
  kExact,       // the whole image, which has the right size already
  kObjectCrop,  // one annotated object, resized; without an object the whole image
};

struct TransformSpec {
  TransformKind kind = TransformKind::kResize;
  Extent out;
  Filter filter = Filter::kBilinear;
  double hflip = 0.0;  // probability of a mirror image
  // kRandomResizedCrop: bounds of the crop's share of the area, of width over height, and of that one's
  // logarithm.
  double scale_min = 0.08, scale_max = 1.0;
  double ratio_min = 1.0, ratio_max = 1.0;
  double log_ratio_min = 0.0, log_ratio_max = 0.0;
  // kCenterCrop: length of the shorter side after the resize.
  int32_t resize = 0;
  JitterSpec jitter = {};  // of the colours of the result
};

// crop (in the stored image) -> resized to `resized` -> the part `window` of it -> mirrored if `flip`.
struct TransformPlan {
  Rect crop;
  Extent resized;
  Rect window;
  bool flip = false;
};

// Throws kBadArgument for settings that no image can be shown with: sides outside of 1 .. kMostSide, numbers
// out of range or not numbers, bounds in the wrong order, a centre larger than what it is cut out of.
void check_transform(const TransformSpec& spec);

// Throws kBadArgument for changes of colours in a mode that has none: RGBA and I;16.
void check_mode(const TransformSpec& spec, PixelMode mode);

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
// pixels are. A box is left out when nothing of it is in the result, when less than `min_visible` of its
// area is, or when its edges are not numbers.
void transform_boxes(const TransformPlan& plan, Extent image, std::span<const LabelledBox> boxes,
                     double min_visible, std::vector<TransformedBox>& out);

// The geometry for one image; pure integer and double arithmetic, the same on every platform. The crop lies
// in the image and the window in the resized crop, whatever `spec`, `image` and `object` are. Throws what
// check_transform() throws, kBadImage for an image that has not the size that kTopLeft and kExact need, or is
// too long for kCenterCrop, and kBadArgument for an image without pixels and for an object in a transform
// that takes none.
TransformPlan plan_transform(const TransformSpec& spec, Extent image, const SampleRandom& random,
                             const std::optional<ObjectBox>& object = std::nullopt);

// The smallest rectangle of whole pixels around a box, clipped to the image; at least one pixel, whatever the
// numbers are.
Rect object_rect(const ObjectBox& box, Extent image);

}  // namespace stoker

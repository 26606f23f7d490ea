// What operations on pixels are. Each is defined in one file of this folder and listed in operations.cpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/pixel_mode.h"
#include "core/base/pixels.h"
#include "core/base/stored_image.h"
#include "core/operations/settings.h"
#include "core/order/philox.h"

namespace stoker {

// crop (in the stored image) -> resized to `resized` by `filter` -> the part `window` of it -> mirrored if
// `flip`.
struct TransformPlan {
  Rect crop;
  Extent resized;
  Rect window;
  bool flip = false;
  Filter filter = Filter::kBilinear;
};

// Decides which pixels of an image become the result. Its settings are read once; it may be used by any
// number of threads.
class GeometryOperation {
 public:
  virtual ~GeometryOperation() = default;

  // Changes a plan that shows all of the image, resized to the size of the result; pure integer and double
  // arithmetic, the same on every platform. The crop must lie in the image and the window in the resized
  // crop, whatever `image` and `object` are. Throws kBadImage for an image that has no such crop.
  virtual void plan(Extent image, const SampleRandom& random, const std::optional<ObjectBox>& object,
                    TransformPlan& plan) const = 0;

  virtual bool shows_objects() const { return false; }
  // Whether every image has the size of the result already, and is shown as it is.
  virtual bool copies() const { return false; }
};

// What an operation does to one sample, for people: what is changed, and the number.
using OperationStep = std::pair<std::string, double>;

// Changes the pixels of the result, in place. Its settings are read once; it may be used by any number of
// threads.
class PixelOperation {
 public:
  virtual ~PixelOperation() = default;

  // Rows of RGB; those of L are given as three equal channels, and must stay so.
  virtual void change(const SampleRandom& random, RgbSlot rows, Extent size) const = 0;
  virtual std::vector<OperationStep> steps(const SampleRandom& random) const = 0;

  virtual bool has_meaning_in(PixelMode mode) const {
    return mode == PixelMode::kRgb || mode == PixelMode::kL;
  }
};

// Throw kBadArgument for an operation that there is not, and for settings that no image can be shown with.
std::shared_ptr<const GeometryOperation> parse_geometry(OperationSettings& settings);
// Null for settings that change nothing.
std::shared_ptr<const PixelOperation> parse_pixel_operation(OperationSettings& settings);

std::string describe(Extent size);

// Halves go to the even neighbour, as Python's round() does.
inline int32_t half_even(double x) {
  return static_cast<int32_t>(std::nearbyint(x));
}

}  // namespace stoker

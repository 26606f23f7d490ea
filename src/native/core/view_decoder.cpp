#include "core/view_decoder.h"

#include <string>

#include "core/errors.h"
#include "core/raw_pixels.h"

namespace stoker {

Rect ViewDecoder::prepare(const ViewSpec& view, const ViewPlan& plan) {
  resampler_.plan(view.filter, {plan.crop.width, plan.crop.height}, plan.resized, plan.window);
  Rect region = resampler_.needed();
  region.x += plan.crop.x;
  region.y += plan.crop.y;
  return region;
}

void ViewDecoder::decode(const StoredImage& image, const ViewSpec& view, const SampleRandom& random,
                         uint64_t max_pixels, RgbSlot slot) {
  if (image.encoding == ImageEncoding::kRaw) {
    if (image.bytes.size() / kRgbBytes > max_pixels) {
      throw Error(ErrorCode::kImageTooLarge, "The image has " +
                                                 std::to_string(image.bytes.size() / kRgbBytes) +
                                                 " pixels; the limit is " + std::to_string(max_pixels) +
                                                 " (raise max_pixels to accept it)");
    }
    return decode_raw(image, view, random, slot);
  }
  const Extent size = decoder_.open(image.bytes, max_pixels);
  const ViewPlan plan = plan_view(view, size, random, image.object);
  resampler_.run(decoder_.decode(prepare(view, plan)), plan.flip, slot);
}

void ViewDecoder::decode_raw(const StoredImage& image, const ViewSpec& view, const SampleRandom& random,
                             RgbSlot slot) {
  const ViewPlan plan = plan_view(view, image.size, random, image.object);
  if (plan.resized == Extent{plan.crop.width, plan.crop.height}) {  // nothing to resample
    const Rect part{plan.crop.x + plan.window.x, plan.crop.y + plan.window.y, plan.window.width,
                    plan.window.height};
    return copy_rgb(image, part, plan.flip, slot);
  }
  const Rect region = prepare(view, plan);
  resampler_.run(to_rgbx(image, region, pixels_), plan.flip, slot);
}

}  // namespace stoker

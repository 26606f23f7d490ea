#include "core/view_decoder.h"

namespace stoker {

void ViewDecoder::decode(std::span<const uint8_t> image, const ViewSpec& view, const SampleRandom& random,
                         uint64_t max_pixels, RgbSlot slot) {
  const Extent size = decoder_.open(image, max_pixels);
  const ViewPlan plan = plan_view(view, size, random);
  resampler_.plan(view.filter, {plan.crop.width, plan.crop.height}, plan.resized, plan.window);
  Rect region = resampler_.needed();
  region.x += plan.crop.x;
  region.y += plan.crop.y;
  resampler_.run(decoder_.decode(region), plan.flip, slot);
}

}  // namespace stoker

#include "core/transforms/reencode.h"

#include <string>

#include "core/base/errors.h"

namespace stoker {
namespace {

void refuse_outside(Rect part, Extent image) {
  if (part.x >= 0 && part.y >= 0 && part.width > 0 && part.height > 0 && part.width <= image.width - part.x &&
      part.height <= image.height - part.y) {
    return;
  }
  throw Error(ErrorCode::kBadArgument, "The part to re-encode is empty or leaves the image of " +
                                           std::to_string(image.width) + " x " +
                                           std::to_string(image.height));
}

}  // namespace

std::vector<uint8_t> Reencoder::run(std::span<const uint8_t> jpeg, const ReencodeSpec& spec) {
  const Extent image = decoder_.open(jpeg, spec.max_pixels);
  refuse_outside(spec.part, image);
  refuse_no_jpeg(spec.size);
  refuse_more_pixels(spec.size, spec.max_pixels);
  const size_t stride = static_cast<size_t>(spec.size.width) * kRgbBytes;
  uint8_t* const pixels = pixels_.take(stride * static_cast<size_t>(spec.size.height) + kRgbxPadding);
  resize(spec, {pixels, stride});
  return encode_jpeg(pixels, spec.size, static_cast<int>(kRgbBytes), spec.encode);
}

void Reencoder::resize(const ReencodeSpec& spec, RgbSlot slot) {
  const bool fast = spec.decode == DecodeMode::kFast && spec.filter != Filter::kNearest;
  const int32_t shrink = fast ? shrink_for({spec.part.width, spec.part.height}, spec.size) : 1;
  const Rect needed = resampler_.plan_part(spec.filter, spec.part, spec.size,
                                           {0, 0, spec.size.width, spec.size.height}, {shrink, fast});
  resampler_.run(decoder_.decode(needed, shrink), false, slot);
}

}  // namespace stoker

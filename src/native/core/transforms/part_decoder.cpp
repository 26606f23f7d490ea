#include "core/transforms/part_decoder.h"

namespace stoker {

Extent PartDecoder::open(std::span<const uint8_t> file, const PartSpec& spec) {
  const Orientation orientation(spec.turns ? exif_orientation(file) : 1);
  const Extent image = regions_.open(file, spec.max_pixels, spec.mode, orientation);
  const Rect part = spec.part.value_or(Rect{0, 0, image.width, image.height});
  refuse_outside(part, image);
  const Extent own{part.width, part.height}, size = spec.size.value_or(own);
  resizes_ = size != own;
  plan_ = {part, size, {0, 0, size.width, size.height}, false, spec.filter};
  if (resizes_) regions_.plan({&plan_, 1}, spec.decode);
  return size;
}

void PartDecoder::write(RgbSlot slot) {
  if (resizes_) {
    regions_.write({&plan_, 1}, {&slot, 1});
  } else {
    regions_.copy(plan_.crop, slot);
  }
}

}  // namespace stoker

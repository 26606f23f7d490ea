#include "core/transforms/part_decoder.h"

namespace stoker {

Extent PartDecoder::open(std::span<const uint8_t> file, const PartSpec& spec) {
  const Extent image = decoder_.open(file, spec.max_pixels, spec.mode);
  const Rect part = spec.part.value_or(Rect{0, 0, image.width, image.height});
  refuse_outside(part, image);
  if (!resampler_ || spec.mode != mode_) resampler_.emplace(spec.mode);
  mode_ = spec.mode;
  const Extent own{part.width, part.height}, size = spec.size.value_or(own);
  resizes_ = size != own;
  shrink_ = 1;
  needed_ = part;
  if (resizes_) {
    const bool fast = spec.decode == DecodeMode::kFast && spec.mode != PixelMode::kI16;
    if (fast && decoder_.shrinks() && spec.filter != Filter::kNearest) shrink_ = shrink_for(own, size);
    needed_ =
        resampler_->plan_part(spec.filter, part, size, {0, 0, size.width, size.height}, {shrink_, fast});
  }
  return size;
}

void PartDecoder::write(RgbSlot slot) {
  decoder_.start(needed_, shrink_);
  if (resizes_) {
    resize(slot);
  } else {
    copy(slot);
  }
}

void PartDecoder::resize(RgbSlot slot) {
  resampler_->start(false, slot, decoder_.is_opaque());
  for (int32_t end = 0; end < needed_.height;) {
    const RgbxRows rows = decoder_.next();
    resampler_->add(rows.pixels, rows.first);
    end = rows.first + rows.pixels.size.height;
  }
  resampler_->finish();
}

void PartDecoder::copy(RgbSlot slot) {
  const auto width = static_cast<size_t>(needed_.width);
  for (int32_t end = 0; end < needed_.height;) {
    const RgbxRows rows = decoder_.next();
    for (int32_t y = 0; y < rows.pixels.size.height; ++y) {
      pack(mode_, rows.pixels.row(y), width, slot.row(rows.first + y));
    }
    end = rows.first + rows.pixels.size.height;
  }
}

}  // namespace stoker

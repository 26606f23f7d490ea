#include "core/transforms/reencode.h"

namespace stoker {

std::vector<uint8_t> Reencoder::run(std::span<const uint8_t> file, const ReencodeSpec& spec) {
  const Extent image = decoder_.open(file, spec.max_pixels);
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
  const int32_t shrink =
      fast && decoder_.shrinks() ? shrink_for({spec.part.width, spec.part.height}, spec.size) : 1;
  const Rect needed = resampler_.plan_part(spec.filter, spec.part, spec.size,
                                           {0, 0, spec.size.width, spec.size.height}, {shrink, fast});
  resampler_.start(false, slot);
  decoder_.start(needed, shrink);
  for (int32_t end = 0; end < needed.height;) {
    const RgbxRows rows = decoder_.next();
    resampler_.add(rows.pixels, rows.first);
    end = rows.first + rows.pixels.size.height;
  }
  resampler_.finish();
}

}  // namespace stoker

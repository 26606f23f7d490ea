#include "core/transforms/reencode.h"

namespace stoker {

std::vector<uint8_t> Reencoder::run(std::span<const uint8_t> file, const ReencodeSpec& spec) {
  refuse_no_jpeg(spec.size);
  refuse_more_pixels(spec.size, spec.max_pixels);
  decoder_.open(file, {.part = spec.part,
                       .size = spec.size,
                       .filter = spec.filter,
                       .decode = spec.decode,
                       .max_pixels = spec.max_pixels});
  const size_t stride = static_cast<size_t>(spec.size.width) * kRgbBytes;
  uint8_t* const pixels = pixels_.take(stride * static_cast<size_t>(spec.size.height) + kRgbxPadding);
  decoder_.write({pixels, stride});
  return encode_jpeg(pixels, spec.size, static_cast<int>(kRgbBytes), spec.encode);
}

}  // namespace stoker

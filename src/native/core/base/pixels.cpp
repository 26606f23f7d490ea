#include "core/base/pixels.h"

#include <cstring>
#include <string>

#include "core/base/errors.h"

namespace stoker {

void rgbx_to_rgb(const RgbxView& from, RgbSlot to) {
  const auto width = static_cast<size_t>(from.size.width);
  for (int32_t y = 0; y < from.size.height; ++y) {
    const uint8_t* source = from.row(y);
    uint8_t* out = to.row(y);
    for (size_t x = 0; x < width; ++x) std::memcpy(out + x * kRgbBytes, source + x * kRgbxBytes, kRgbBytes);
  }
}

// Four bytes at a time: the last of them is the first of the next pixel, and where it lands is undefined
// anyway. Behind the last pixel there need not be another.
void rgb_to_rgbx(const uint8_t* from, size_t pixels, uint8_t* to) {
  if (pixels == 0) return;
  for (size_t x = 0; x + 1 < pixels; ++x) std::memcpy(to + x * kRgbxBytes, from + x * kRgbBytes, kRgbxBytes);
  std::memcpy(to + (pixels - 1) * kRgbxBytes, from + (pixels - 1) * kRgbBytes, kRgbBytes);
}

void refuse_more_pixels(Extent image, uint64_t max_pixels) {
  if (static_cast<uint64_t>(image.width) * static_cast<uint64_t>(image.height) <= max_pixels) return;
  throw Error(ErrorCode::kImageTooLarge, "The image declares " + std::to_string(image.width) + " x " +
                                             std::to_string(image.height) + " pixels; the limit is " +
                                             std::to_string(max_pixels) + " (raise max_pixels to accept it)");
}

}  // namespace stoker

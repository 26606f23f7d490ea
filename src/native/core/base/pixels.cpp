#include "core/base/pixels.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/base/errors.h"
#include "core/base/pack_kernels.h"

namespace stoker {

void rgbx_to_rgb(const RgbxView& from, RgbSlot to) {
  const auto width = static_cast<size_t>(from.size.width);
  const PackKernels& kernels = *pack_kernels().front();
  for (int32_t y = 0; y < from.size.height; ++y) kernels.to_rgb(from.row(y), width, to.row(y));
}

// Four bytes at a time: the last of them is the first of the next pixel, and where it lands is undefined
// anyway. Behind the last pixel there need not be another.
void rgb_to_rgbx(const uint8_t* from, size_t pixels, uint8_t* to) {
  if (pixels == 0) return;
  for (size_t x = 0; x + 1 < pixels; ++x) std::memcpy(to + x * kRgbxBytes, from + x * kRgbBytes, kRgbxBytes);
  std::memcpy(to + (pixels - 1) * kRgbxBytes, from + (pixels - 1) * kRgbBytes, kRgbBytes);
}

void refuse_more_pixels(Extent image, uint64_t max_pixels) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kImageTooLarge, "The image declares " + std::to_string(image.width) + " x " +
                                               std::to_string(image.height) + " pixels; " + why);
  };
  if (static_cast<uint64_t>(image.width) * static_cast<uint64_t>(image.height) > max_pixels)
    refuse("the limit is " + std::to_string(max_pixels) + " (raise max_pixels to accept it)");
  if (std::max(image.width, image.height) > kMostImageSide)
    refuse("a side has at most " + std::to_string(kMostImageSide) + " (cut the image into parts)");
}

void refuse_outside(Rect region, Extent image) {
  if (region.x >= 0 && region.y >= 0 && region.width > 0 && region.height > 0 &&
      region.width <= image.width - region.x && region.height <= image.height - region.y) {
    return;
  }
  throw Error(ErrorCode::kBadArgument,
              "The box (" + std::to_string(region.x) + ", " + std::to_string(region.y) + ", " +
                  std::to_string(int64_t{region.x} + region.width) + ", " +
                  std::to_string(int64_t{region.y} + region.height) + ") is empty or leaves the image of " +
                  std::to_string(image.width) + " x " + std::to_string(image.height));
}

}  // namespace stoker

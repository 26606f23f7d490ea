#include "core/builds/stored_size.h"

#include <algorithm>

namespace stoker {

PixelSize StoredSize::target(PixelSize image) const {
  if (mode == StoredSizeMode::kExact || mode == StoredSizeMode::kSquare) return {width, height};
  const int64_t longer = std::max(image.width, image.height), shorter = std::min(image.width, image.height);
  if (mode == StoredSizeMode::kMax && longer <= width) return image;
  const int64_t reference = mode == StoredSizeMode::kShort ? shorter : longer;
  const auto scaled = [&](int64_t side) {
    return std::max<int64_t>(1, (2 * side * width + reference) / (2 * reference));
  };
  return {scaled(image.width), scaled(image.height)};
}

}  // namespace stoker

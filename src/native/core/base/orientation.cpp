#include "core/base/orientation.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "core/base/stored_image.h"

namespace stoker {

Extent Orientation::upright(Extent stored) const {
  return swaps_ ? Extent{stored.height, stored.width} : stored;
}

ObjectBox Orientation::upright(const ObjectBox& stored) const {
  ObjectBox box = stored;
  if (mirrored_) box.xmin = 1 - stored.xmax, box.xmax = 1 - stored.xmin;
  if (upside_down_) box.ymin = 1 - stored.ymax, box.ymax = 1 - stored.ymin;
  if (swaps_) std::swap(box.xmin, box.ymin), std::swap(box.xmax, box.ymax);
  return box;
}

Rect Orientation::stored(Rect upright, Extent image) const {
  Rect region = upright;
  if (swaps_) region = {upright.y, upright.x, upright.height, upright.width};
  if (mirrored_) region.x = image.width - region.x - region.width;
  if (upside_down_) region.y = image.height - region.y - region.height;
  return region;
}

void Orientation::turn(const RgbxRows& rows, Extent stored, uint8_t* upright) const {
  const auto row = static_cast<ptrdiff_t>(kRgbxBytes) * this->upright(stored).width;
  // Of a step to the right, and of one down, in what is stored.
  ptrdiff_t right = swaps_ ? row : ptrdiff_t{kRgbxBytes}, down = swaps_ ? ptrdiff_t{kRgbxBytes} : row;
  if (mirrored_) upright += (stored.width - 1) * right, right = -right;
  if (upside_down_) upright += (stored.height - 1) * down, down = -down;
  upright += rows.first * down;
  const auto copy = [&](int32_t x, int32_t y) {
    const uint8_t* const from = rows.pixels.row(y) + static_cast<size_t>(x) * kRgbxBytes;
    std::memcpy(upright + x * right + y * down, from, kRgbxBytes);
  };
  const int32_t width = stored.width, height = rows.pixels.size.height;
  if (swaps_) {  // what is written lies side by side
    for (int32_t x = 0; x < width; ++x) {
      for (int32_t y = 0; y < height; ++y) copy(x, y);
    }
    return;
  }
  for (int32_t y = 0; y < height; ++y) {
    for (int32_t x = 0; x < width; ++x) copy(x, y);
  }
}

int32_t Orientation::most_shrink(Extent stored) const {
  int32_t shrink = 8;
  while ((mirrored_ && stored.width % shrink != 0) || (upside_down_ && stored.height % shrink != 0))
    shrink /= 2;
  return shrink;
}

}  // namespace stoker

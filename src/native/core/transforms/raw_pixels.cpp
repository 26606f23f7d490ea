#include "core/transforms/raw_pixels.h"

#include <cstring>
#include <string>

#include "core/base/errors.h"

namespace stoker {
namespace {

// Where the channels of a pixel lie: `plane` bytes from one to the next, `row` from one row to the next.
struct Layout {
  const uint8_t* first;  // of the region
  size_t row;
  size_t plane;
};

Layout layout_of(const StoredImage& image, Rect region) {
  const auto width = static_cast<size_t>(image.size.width), height = static_cast<size_t>(image.size.height);
  const size_t step = image.order == TensorOrder::kHwc ? pixel_bytes(image.mode) : 1;
  const size_t plane = image.order == TensorOrder::kHwc ? 1 : width * height;
  const size_t begin = (static_cast<size_t>(region.y) * width + static_cast<size_t>(region.x)) * step;
  return {image.bytes.data() + begin, width * step, plane};
}

// One row of `columns` pixels. The compiler makes a loop of its own for each pair.
template <size_t kStep, size_t kPixel>
void spread(const uint8_t* from, size_t plane, size_t columns, uint8_t* to) {
  for (size_t x = 0; x < columns; ++x) {
    for (size_t c = 0; c < kRgbBytes; ++c) to[x * kPixel + c] = from[x * kStep + c * plane];
  }
}

void mirror(uint8_t* row, size_t columns) {
  for (size_t left = 0, right = columns; left + 1 < right; ++left) {
    --right;
    uint8_t kept[kRgbBytes];
    std::memcpy(kept, row + left * kRgbBytes, kRgbBytes);
    std::memcpy(row + left * kRgbBytes, row + right * kRgbBytes, kRgbBytes);
    std::memcpy(row + right * kRgbBytes, kept, kRgbBytes);
  }
}

}  // namespace

RgbxView to_rgbx(const StoredImage& image, Rect region, PixelMode mode, ScratchBytes& scratch) {
  if (image.mode != mode && image.mode != PixelMode::kRgb) {
    throw Error(ErrorCode::kBadArgument, std::string("Pixels of mode ") + name_of(image.mode) +
                                             " are not shown in mode " + name_of(mode));
  }
  if (mode == PixelMode::kI16 && image.mode == PixelMode::kRgb) {
    throw Error(
        ErrorCode::kBadImage,
        "The image is stored as raw RGB of 8 bits, which mode I;16 does not show: choose mode RGB, L or "
        "RGBA");
  }
  const Layout layout = layout_of(image, region);
  const auto columns = static_cast<size_t>(region.width), rows = static_cast<size_t>(region.height);
  const size_t stride = columns * kRgbxBytes;
  uint8_t* const out = scratch.take(stride * rows + kRgbxPadding);
  for (size_t y = 0; y < rows; ++y) {
    const uint8_t* from = layout.first + y * layout.row;
    uint8_t* to = out + y * stride;
    if (image.mode != PixelMode::kRgb) {
      unpack(mode, from, columns, to);
    } else if (image.order == TensorOrder::kHwc) {
      rgb_to_rgbx(from, columns, to);
    } else {
      spread<1, kRgbxBytes>(from, layout.plane, columns, to);
    }
    if (image.mode != mode) to_mode(mode, to, columns, to);
  }
  return {out, stride, {region.width, region.height}};
}

void copy_rgb(const StoredImage& image, Rect region, bool flip, RgbSlot slot) {
  const Layout layout = layout_of(image, region);
  const auto columns = static_cast<size_t>(region.width);
  for (int32_t y = 0; y < region.height; ++y) {
    const uint8_t* from = layout.first + static_cast<size_t>(y) * layout.row;
    if (image.order == TensorOrder::kHwc) {
      std::memcpy(slot.row(y), from, columns * kRgbBytes);
    } else {
      spread<1, kRgbBytes>(from, layout.plane, columns, slot.row(y));
    }
    if (flip) mirror(slot.row(y), columns);
  }
}

}  // namespace stoker

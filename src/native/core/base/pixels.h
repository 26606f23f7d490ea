// Geometry and pixels that decode, resampling and transforms share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker {

struct Extent {
  int32_t width = 0;
  int32_t height = 0;
  friend bool operator==(const Extent&, const Extent&) = default;
};

// Half-open: x <= column < x + width.
struct Rect {
  int32_t x = 0;
  int32_t y = 0;
  int32_t width = 0;
  int32_t height = 0;
  friend bool operator==(const Rect&, const Rect&) = default;
};

inline constexpr size_t kRgbxBytes = 4;
inline constexpr size_t kRgbBytes = 3;
// Readers of RGBX rows may load this many bytes past the last pixel of the last row.
inline constexpr size_t kRgbxPadding = 64;

// 11,585 x 11,585 pixels. An image that declares more is refused before anything is allocated for it.
inline constexpr uint64_t kDefaultMaxPixels = uint64_t{1} << 27;

// The most pixels that a side of a result may have.
inline constexpr int32_t kMostSide = 1 << 16;

// The most pixels that a side of an image may have: resizing takes some 24 bytes for each, and of a single
// column of black a PNG has four for a thousand.
inline constexpr int32_t kMostImageSide = 1 << 20;

// Throws kImageTooLarge for an image of more than `max_pixels`, or with a side of more than kMostImageSide;
// to be called before memory is taken for it.
void refuse_more_pixels(Extent image, uint64_t max_pixels);

// Throws kBadArgument for a region that is empty or leaves the image.
void refuse_outside(Rect region, Extent image);

// Borrowed RGBX pixels (the fourth byte is undefined); rows are `stride` bytes apart. What kernels call is
// always inlined (core/base/kernels.h).
struct RgbxView {
  const uint8_t* data = nullptr;
  size_t stride = 0;
  Extent size;

  [[gnu::always_inline]] const uint8_t* row(int32_t y) const {
    return data + static_cast<size_t>(y) * stride;
  }
};

// Some rows of a region, below others that came before. They live until the next are asked for.
struct RgbxRows {
  RgbxView pixels;    // readable kRgbxPadding bytes past their end
  int32_t first = 0;  // the row of the region that the first of them is
};

// Decoders give so many bytes of rows together, which fit a second-level cache beside all else, ...
inline constexpr size_t kBandBytes = size_t{128} << 10;
// ... and, but for the last, rows in groups of so many, as the resampler takes them.
inline constexpr int32_t kRowGroup = 4;

// Borrowed, writable RGB pixels, or where a mode is chosen, pixels of that.
struct RgbSlot {
  uint8_t* data = nullptr;
  size_t stride = 0;

  [[gnu::always_inline]] uint8_t* row(int32_t y) const { return data + static_cast<size_t>(y) * stride; }
};

// Pixels from one layout to the other, which do not overlap.
void rgbx_to_rgb(const RgbxView& from, RgbSlot to);
void rgb_to_rgbx(const uint8_t* from, size_t pixels, uint8_t* to);

}  // namespace stoker

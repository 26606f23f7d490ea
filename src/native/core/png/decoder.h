// Decode of regions of a PNG.
//
// Pixels are those of Pillow's convert(), with one exception: 16-bit grey becomes round(value / 257), while
// Pillow clips it at 255. Palettes are looked up, other samples of 16 bits keep their high byte, transparency
// matters only for RGBA, and gamma is not applied. An animation gives its default image.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include "core/base/pixel_mode.h"
#include "core/base/pixels.h"

namespace stoker {

// Whether this core was built with libpng. Without it nothing of PngDecoder may be called.
bool has_png();

inline bool begins_as_png(std::span<const uint8_t> file) {
  constexpr uint8_t kSignature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  return file.size() >= sizeof kSignature &&
         std::equal(kSignature, kSignature + sizeof kSignature, file.data());
}

// The orientation in the metadata of a PNG, by EXIF or else XMP, 1 to 8; 1 if there is none. Metadata may
// come after the pixels; compressed metadata are inflated up to a limit. Must not be called without libpng.
int png_orientation(std::span<const uint8_t> file);

// Decodes regions of one image after another. One per thread; it keeps its scratch memory.
class PngDecoder {
 public:
  PngDecoder();
  ~PngDecoder();
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  // Reads what comes before the compressed data. `bytes` must live until the last row was decoded. Throws
  // kImageTooLarge for more pixels than `max_pixels`, and kBadImage also where `bytes` are too few for the
  // pixels that are claimed. Chunks that say nothing of pixels are passed over, and never inflated.
  //
  // For kRgba the fourth byte of pixels is alpha; a transparency that libpng refuses is kBadImage, then. For
  // kI16 pixels carry that mode if is_deep(), and a palette is kBadImage, as with Pillow. All else is RGBX.
  Extent open(std::span<const uint8_t> bytes, uint64_t max_pixels = kDefaultMaxPixels,
              PixelMode mode = PixelMode::kRgb);

  // Whether the opened image is grey of 16 bits that was asked for as such.
  bool is_deep() const;

  // Begins to decode `region` of the opened image, once per open(); next() has its pixels.
  //
  // Both throw kBadImage where pixels are missing or damaged. Nothing is read below the last row of the
  // region, so damage there is not found.
  void start(Rect region);

  // The next rows of the region, until the last one has come: a few at a time, so that they lie in a cache,
  // and, but for the last, in fours. Rows that have come may come once more, from the first one on: only
  // those that come last count.
  RgbxRows next();

  // start(), and all rows at once. They live until the next open().
  RgbxView decode(Rect region);

  // Instead of start(): reads all rows, and compares the checksum of the pixels. Throws what decode() of the
  // whole image would.
  void check();

 private:
  struct State;

  std::unique_ptr<State> state_;
};

}  // namespace stoker

// Decode of regions of a WebP, by libwebp: lossy and lossless, of an animation the first frame.
//
// Pixels are those of Pillow's convert("RGB"), and the fourth byte is alpha where the file says that it has
// some. What of an animation's canvas the first frame leaves free is black, and transparent.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "core/base/pixels.h"

namespace stoker {

// Whether this core was built with libwebp. Without it nothing of WebpDecoder may be called.
bool has_webp();

inline bool begins_as_webp(std::span<const uint8_t> file) {
  return file.size() >= 12 && std::memcmp(file.data(), "RIFF", 4) == 0 &&
         std::memcmp(file.data() + 8, "WEBP", 4) == 0;
}

// Of the metadata of a WebP, by EXIF or else XMP, 1 to 8; 1 where there is none. Throws kBadImage for a file
// that is cut short.
int webp_orientation(std::span<const uint8_t> file);

// Decodes regions of one image after another. One per thread; it keeps its scratch memory.
class WebpDecoder {
 public:
  WebpDecoder();
  ~WebpDecoder();
  WebpDecoder(const WebpDecoder&) = delete;
  WebpDecoder& operator=(const WebpDecoder&) = delete;

  // Walks all chunks. `bytes` must live until decode() returns. Throws kImageTooLarge for more pixels than
  // `max_pixels`, and kBadImage for a file that is cut short, or too short for the pixels that it claims.
  Extent open(std::span<const uint8_t> bytes, uint64_t max_pixels = kDefaultMaxPixels);

  // Whether the opened image says that it has alpha.
  bool has_alpha() const;

  // Decodes `region` of the opened image, once per open(). The view lives until the next open().
  //
  // Throws kBadImage where pixels are missing or damaged. Next to nothing is read below the last row of the
  // region, so damage there is not found.
  RgbxView decode(Rect region);

  // Instead of decode(): throws what decode() of the whole image would.
  void check();

 private:
  struct Libwebp;

  std::unique_ptr<Libwebp> libwebp_;
};

}  // namespace stoker

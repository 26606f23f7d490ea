// Decode of regions of a JPEG.
//
// Pixels equal libjpeg-turbo's accurate decode of the whole image (integer DCT, fancy upsampling), which is
// what Pillow gives; CMYK and YCCK become RGB by the formula of Pillow's convert("RGB") on Adobe's inverted
// inks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/base/pixels.h"
#include "core/base/scratch_bytes.h"

namespace stoker {

// kExact: the pixels of libjpeg's accurate decode, resized as Pillow does. kFast: images are decoded at a
// half, a quarter or an eighth where what is made of them is not larger, and resized with weights of 11 bits.
enum class DecodeMode { kExact, kFast };

// The largest of 8, 4, 2 and 1 by which a part may be shrunk without becoming smaller than `out`.
int32_t shrink_for(Extent part, Extent out);

class BaselineDecoder;

// Decodes regions of one image after another. One per thread; it keeps its scratch memory.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Reads the header. `bytes` must live until decode() returns. Throws kImageTooLarge for more pixels than
  // `max_pixels`, and kBadImage also where `bytes` are too few for the pixels that are claimed.
  Extent open(std::span<const uint8_t> bytes, uint64_t max_pixels = kDefaultMaxPixels);

  // Decodes `region` of the opened image, once per open(). The view lives until the next open().
  //
  // Throws kBadImage where the pixels would not be those of the file. Damage below the region need not be
  // found in a file of one scan, which is read no further than necessary.
  //
  // With `shrink` 2, 4 or 8 the image is decoded at that part of its size, sides rounded up, from its lower
  // frequencies alone, and `region` lies in that smaller image: about what averaging its pixels gives.
  RgbxView decode(Rect region, int32_t shrink = 1);

  // Instead of decode(): reads all that is entropy-coded, and makes no pixels. Throws what decode() of the
  // whole image would.
  void check();

 private:
  struct Libjpeg;

  void open_libjpeg();

  std::unique_ptr<Libjpeg> libjpeg_;
  std::unique_ptr<BaselineDecoder> baseline_;
  bool is_baseline_ = false;  // the opened image
  bool is_open_ = false;
  std::span<const uint8_t> bytes_;
  Extent size_;
  ScratchBytes pixels_;
};

}  // namespace stoker

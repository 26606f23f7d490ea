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
class EntryPoints;
class FrameReader;
class ProgressiveDecoder;

// Decodes regions of one image after another. One per thread; it keeps its scratch memory.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Reads the header. `bytes` must live until the last row was decoded. Throws kImageTooLarge for more pixels
  // than `max_pixels`, and kBadImage also where `bytes` are too few for the pixels that are claimed.
  Extent open(std::span<const uint8_t> bytes, uint64_t max_pixels = kDefaultMaxPixels);

  // Begins to decode `region` of the opened image, once per open(); next() has its pixels.
  //
  // Both throw kBadImage where the pixels would not be those of the file. Damage below the region need not be
  // found in a file of one scan, which is read no further than necessary.
  //
  // With `shrink` 2, 4 or 8 the image is decoded at that part of its size, sides rounded up, from its lower
  // frequencies alone, and `region` lies in that smaller image: about what averaging its pixels gives.
  //
  // From the `entries` of the image, if there are any, decoding begins at the last one above the region, and
  // more are noted. If one is wrong they are forgotten, and the image is decoded from its start.
  void start(Rect region, int32_t shrink = 1, EntryPoints* entries = nullptr);

  // The next rows of the region, until the last one has come: a few at a time, so that they lie in a cache,
  // and, but for the last, in fours. Rows that have come may come once more, from the first one on: only
  // those that come last count.
  RgbxRows next();

  // start(), and all rows at once. They live until the next open().
  RgbxView decode(Rect region, int32_t shrink = 1);

  // Instead of start(): reads all that is entropy-coded, and makes no pixels. Throws what decode() of the
  // whole image would.
  void check();

 private:
  struct Libjpeg;
  enum class Reader { kBaseline, kProgressive, kLibjpeg };

  void open_libjpeg();
  void start_libjpeg();
  bool read_alone(uint8_t* out, int32_t& rows, int32_t enough);
  bool starts_over();
  size_t stride() const { return static_cast<size_t>(region_.width) * kRgbxBytes; }

  std::unique_ptr<Libjpeg> libjpeg_;
  std::unique_ptr<FrameReader> headers_;
  std::unique_ptr<BaselineDecoder> baseline_;
  std::unique_ptr<ProgressiveDecoder> progressive_;
  Reader reader_ = Reader::kLibjpeg;  // of the opened image
  bool is_open_ = false;
  std::span<const uint8_t> bytes_;
  Extent size_;
  Rect region_;
  int32_t shrink_ = 1;
  EntryPoints* entries_ = nullptr;
  int32_t done_ = 0;   // rows of the region that were given
  int32_t given_ = 0;  // rows at the begin of `pixels_` that were given last,
  int32_t held_ = 0;   // and those behind that were not
  ScratchBytes pixels_;
};

}  // namespace stoker

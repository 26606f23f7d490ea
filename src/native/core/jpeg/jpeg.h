// JPEG over libjpeg-turbo: header, region decode, encode.
//
// Pixels equal libjpeg-turbo's accurate decode of the whole image (integer DCT, fancy upsampling), which is
// what Pillow gives; CMYK and YCCK become RGB by the formula of Pillow's convert("RGB") on Adobe's inverted
// inks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/pixels.h"

namespace stoker {

// 11,585 x 11,585 pixels. An image that declares more is refused before anything is allocated for it.
inline constexpr uint64_t kDefaultMaxPixels = uint64_t{1} << 27;

// kExact: the pixels of libjpeg's accurate decode, resized as Pillow does. kFast: images are decoded at a
// half, a quarter or an eighth where what is made of them is not larger, and resized with weights of 11 bits.
enum class DecodeMode { kExact, kFast };

// The largest of 8, 4, 2 and 1 by which a part may be shrunk without becoming smaller than `out`.
int32_t shrink_for(Extent part, Extent out);

enum class JpegColor { kGrey, kYcbcr, kRgb, kCmyk, kYcck, kOther };

struct JpegInfo {
  int32_t width = 0;
  int32_t height = 0;
  int components = 0;
  int bits = 8;
  JpegColor color = JpegColor::kOther;
  bool progressive = false;
  bool arithmetic = false;
  bool lossless = false;
  uint32_t restart_interval = 0;  // in MCUs; 0 = no markers
  int orientation = 1;            // EXIF tag 274; 1 when absent
  // Sampling factors of the first four components, horizontal in the high nibble, as in the file.
  uint8_t sampling[4] = {0, 0, 0, 0};
};

// "4:2:0" and so on; "grey" for one component; "other" for anything that has no usual name.
const char* subsampling_name(const JpegInfo& info);

// Reads the header alone, without libjpeg. Throws kBadImage with the byte offset in Where.offset.
JpegInfo probe_jpeg(std::span<const uint8_t> bytes);

// As probe_jpeg, then walks the entropy-coded data to the end-of-image marker; a file cut short is kBadImage.
JpegInfo check_jpeg(std::span<const uint8_t> bytes);

// Throws kImageTooLarge for an image of more than `max_pixels`; to be called before memory is taken for it.
void refuse_more_pixels(Extent image, uint64_t max_pixels);

class BaselineDecoder;

// Decodes regions of one image after another. One per thread; it keeps its scratch memory.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Reads the header. `bytes` must live until decode() returns.
  Extent open(std::span<const uint8_t> bytes, uint64_t max_pixels = kDefaultMaxPixels);

  // Decodes `region` of the opened image, once per open(). The view lives until the next open().
  //
  // With `shrink` 2, 4 or 8 the image is decoded at that part of its size, sides rounded up, from its lower
  // frequencies alone, and `region` lies in that smaller image: about what averaging its pixels gives.
  RgbxView decode(Rect region, int32_t shrink = 1);

 private:
  struct Codec;  // libjpeg's side

  std::unique_ptr<Codec> codec_;
  std::unique_ptr<BaselineDecoder> baseline_;
  bool is_baseline_ = false;  // the opened image
  bool is_open_ = false;
  std::span<const uint8_t> bytes_;
  Extent size_;
  std::vector<uint8_t> pixels_;
};

// Whether a file is a JPEG, damaged or not, by its first two bytes.
inline bool begins_as_jpeg(std::span<const uint8_t> file) {
  return file.size() >= 2 && file[0] == 0xff && file[1] == 0xd8;
}

// Encodes RGB (channels = 3) or grey (1) rows as baseline JPEG with optimised Huffman tables.
struct JpegEncodeSpec {
  int quality = 90;
  int horizontal_sampling = 2;  // of luma over chroma: 2 and 2 is 4:2:0, 1 and 1 is 4:4:4
  int vertical_sampling = 2;
  uint32_t restart_interval = 0;  // MCUs between restart markers; 0 writes none
};
std::vector<uint8_t> encode_jpeg(const uint8_t* pixels, Extent size, int channels,
                                 const JpegEncodeSpec& spec);

}  // namespace stoker

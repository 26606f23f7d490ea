// Encode of JPEGs.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/pixels.h"

namespace stoker {

// Encodes RGB (channels = 3) or grey (1) rows as baseline JPEG.
struct JpegEncodeSpec {
  int quality = 90;
  int horizontal_sampling = 2;  // of luma over chroma: 2 and 2 is 4:2:0, 1 and 1 is 4:4:4
  int vertical_sampling = 2;
  bool optimize = true;           // Huffman tables for each image; otherwise those of T.81 annex K
  uint32_t restart_interval = 0;  // MCUs between restart markers; 0 writes none
  uint32_t restart_tiles = 0;     // not 0: the interval for about so many tiles across
};
std::vector<uint8_t> encode_jpeg(const uint8_t* pixels, Extent size, int channels,
                                 const JpegEncodeSpec& spec);

// What libjpeg takes, which is a little less than the format allows.
inline constexpr int32_t kMostJpegSide = 65500;

// Throws kBadArgument for a size that no JPEG can have; encode_jpeg() does, too.
void refuse_no_jpeg(Extent size);

}  // namespace stoker

// What the header of a JPEG says, read without libjpeg.
#pragma once

#include <cstdint>
#include <span>

#include "core/jpeg/markers.h"

namespace stoker {

// Whether a file is a JPEG, damaged or not, by its first two bytes.
inline bool begins_as_jpeg(std::span<const uint8_t> file) {
  return file.size() >= 2 && file[0] == 0xff && file[1] == 0xd8;
}

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
  int orientation = 1;            // of EXIF or else XMP; 1 when absent
  // Sampling factors of the first four components, horizontal in the high nibble, as in the file.
  uint8_t sampling[4] = {0, 0, 0, 0};
};

// "4:2:0" and so on; "grey" for one component; "other" for anything that has no usual name.
const char* subsampling_name(const JpegInfo& info);

// Reads the header alone, without libjpeg. Throws kBadImage with the byte offset in Where.offset.
JpegInfo probe_jpeg(std::span<const uint8_t> bytes);

// As probe_jpeg, then walks all markers to the end of the image. kBadImage is also a file cut short, too
// short for the pixels that it claims, or of a kind that is not decoded: lossless, not 8 bits, or of
// components whose meaning is unknown.
JpegInfo check_jpeg(std::span<const uint8_t> bytes);

// The second half of check_jpeg: from `at`, within entropy-coded data, to the end-of-image marker.
void check_to_end(std::span<const uint8_t> bytes, size_t at);

}  // namespace stoker

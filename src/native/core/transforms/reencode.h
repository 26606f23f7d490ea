// One image file to a JPEG of another size, in one go: decode, cut, resample, encode.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/pixels.h"
#include "core/base/scratch_bytes.h"
#include "core/jpeg/encode.h"
#include "core/transforms/part_decoder.h"

namespace stoker {

struct ReencodeSpec {
  Rect part;    // of the source, in its pixels
  Extent size;  // that the part becomes
  Filter filter = Filter::kBicubic;
  JpegEncodeSpec encode;
  DecodeMode decode = DecodeMode::kExact;
  uint64_t max_pixels = kDefaultMaxPixels;
};

// Re-encodes one image after another. One per thread; it keeps its scratch memory.
class Reencoder {
 public:
  // With kExact, the bytes that decoding the part, resampling it and encode_jpeg give one after another.
  // kFast as TransformDecoder does. Throws what these throw.
  std::vector<uint8_t> run(std::span<const uint8_t> file, const ReencodeSpec& spec);

 private:
  PartDecoder decoder_;
  ScratchBytes pixels_;
};

}  // namespace stoker

// One JPEG to another of another size, in one go: decode, cut, resample, encode.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/jpeg/fast_decoder.h"
#include "core/jpeg/jpeg.h"
#include "core/pixels.h"
#include "core/resample.h"

namespace stoker {

struct ReencodeSpec {
  Rect part;    // of the source, in its pixels
  Extent size;  // that the part becomes
  Filter filter = Filter::kBicubic;
  JpegEncodeSpec encode;
  DecodeMode decode = DecodeMode::kExact;
  uint64_t max_pixels = kDefaultMaxPixels;
};

// Re-encodes one image after another. One per thread; it keeps its scratch memory: what the largest image
// took.
class Reencoder {
 public:
  // With kExact, the bytes that decoding the part, resampling it and encode_jpeg give one after another.
  // kFast may decode at a fraction of the size where the part is the whole image. Throws what these throw.
  std::vector<uint8_t> run(std::span<const uint8_t> jpeg, const ReencodeSpec& spec);

 private:
  void resize_exactly(std::span<const uint8_t> jpeg, const ReencodeSpec& spec);
  void resize_fast(std::span<const uint8_t> jpeg, const ReencodeSpec& spec, Extent image);
  RgbSlot slot(Extent size);

  JpegDecoder decoder_;
  FastJpegDecoder fast_;
  Resampler resampler_;
  std::vector<uint8_t> pixels_;
};

}  // namespace stoker

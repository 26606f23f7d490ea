// The cheaper decode: fast integer DCT, chroma repeated instead of interpolated, and half, quarter or eighth
// size where that is still enough. Not bit-equal to anything.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/jpeg/jpeg.h"

namespace stoker {

// Decodes whole images, one after another. One per thread; it keeps its scratch memory.
class FastJpegDecoder {
 public:
  FastJpegDecoder();
  ~FastJpegDecoder();
  FastJpegDecoder(const FastJpegDecoder&) = delete;
  FastJpegDecoder& operator=(const FastJpegDecoder&) = delete;

  // Decodes at the smallest of 1/1, 1/2, 1/4, 1/8 that is not smaller than `least` in either direction; a
  // `least` larger than the image gives 1/1. Only libjpeg's SIMD sizes: the others cost more than they save.
  // The view lives until the next call. Not for CMYK and YCCK (kBadArgument).
  RgbxView decode(std::span<const uint8_t> bytes, Extent least, uint64_t max_pixels);

 private:
  struct Codec;
  std::unique_ptr<Codec> codec_;
  std::vector<uint8_t> pixels_;
  std::vector<uint8_t*> rows_;
};

}  // namespace stoker

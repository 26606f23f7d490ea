// A part of an image file, resized or as it is, into memory of the caller.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/base/pixel_mode.h"
#include "core/base/pixels.h"
#include "core/transforms/region_decoder.h"

namespace stoker {

struct PartSpec {
  std::optional<Rect> part = {};    // of the image, in its pixels; without it all of the image
  std::optional<Extent> size = {};  // that the part becomes; without it its own
  PixelMode mode = PixelMode::kRgb;
  Filter filter = Filter::kBilinear;
  DecodeMode decode = DecodeMode::kExact;  // pixels of kI16 are exact in both
  uint64_t max_pixels = kDefaultMaxPixels;
  bool turns = false;  // whether the image is turned as exif_orientation() says, before anything else
};

// Decodes parts of one image after another. One per thread; it keeps its scratch memory.
class PartDecoder {
 public:
  // Reads the header of `file`, which must live until write() returns. The result is the size of the pixels.
  // Throws what ImageDecoder::open() and ResamplePlan::plan_part() throw, and kBadArgument for a part that
  // leaves the image.
  Extent open(std::span<const uint8_t> file, const PartSpec& spec);

  // Writes the pixels, in the mode: once per open(). Throws kBadImage where they would not be those of the
  // file; some of them may be written then.
  void write(RgbSlot slot);

 private:
  RegionDecoder regions_;
  TransformPlan plan_;
  bool resizes_ = false;
};

}  // namespace stoker

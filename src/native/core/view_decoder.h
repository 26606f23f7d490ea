// One image through one view: header, geometry, region decode, resample.
#pragma once

#include <cstdint>
#include <span>

#include "core/jpeg.h"
#include "core/resample.h"
#include "core/view.h"

namespace stoker {

// Keeps its scratch memory from image to image; one per thread.
class ViewDecoder {
 public:
  // Writes view.out.height rows of RGB to `slot`. Throws kBadImage or kImageTooLarge.
  void decode(std::span<const uint8_t> image, const ViewSpec& view, const SampleRandom& random,
              uint64_t max_pixels, RgbSlot slot);

 private:
  JpegDecoder decoder_;
  Resampler resampler_;
};

}  // namespace stoker

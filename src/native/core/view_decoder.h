// One image through one view: header, geometry, region decode, resample.
#pragma once

#include <cstdint>
#include <vector>

#include "core/jpeg.h"
#include "core/resample.h"
#include "core/stored_image.h"
#include "core/view.h"

namespace stoker {

// Keeps its scratch memory from image to image; one per thread.
class ViewDecoder {
 public:
  // Writes view.out.height rows of RGB to `slot`. Throws kBadImage or kImageTooLarge.
  void decode(const StoredImage& image, const ViewSpec& view, const SampleRandom& random, uint64_t max_pixels,
              RgbSlot slot);

 private:
  void decode_raw(const StoredImage& image, const ViewSpec& view, const SampleRandom& random, RgbSlot slot);
  // Prepares the resampler; the part of the image that it needs.
  Rect prepare(const ViewSpec& view, const ViewPlan& plan);

  JpegDecoder decoder_;
  Resampler resampler_;
  std::vector<uint8_t> pixels_;  // of raw images
};

}  // namespace stoker

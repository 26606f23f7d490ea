// One image through one or several transforms: header, geometry, region decode, resample, colours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/stored_image.h"
#include "core/clocks/stage_clock.h"
#include "core/jpeg/decoder.h"
#include "core/resize/resample.h"
#include "core/transforms/transform.h"

namespace stoker {

// Keeps its scratch memory from image to image; one per thread.
class TransformDecoder {
 public:
  // What it does is marked on `clock`, which the caller keeps, if there is one.
  explicit TransformDecoder(DecodeMode mode = DecodeMode::kExact, StageClock* clock = nullptr)
      : mode_(mode), clock_(clock) {}

  // Writes the rows of RGB of each transform to its slot; the image is decoded once, and only as much of it
  // as the transforms need. Throws kBadImage or kImageTooLarge, also for a raw image whose bytes are not
  // those of its size; and kBadArgument unless there is a transform, and a slot for each.
  void decode(const StoredImage& image, std::span<const TransformSpec> transforms, const SampleRandom& random,
              uint64_t max_pixels, std::span<const RgbSlot> slots);

  // The whole image as RGB rows without gaps, in `pixels`; its size.
  Extent decode_whole(std::span<const uint8_t> jpeg, uint64_t max_pixels, std::vector<uint8_t>& pixels);

  // Of the last image: its size, and what the transforms showed of it.
  Extent size() const { return size_; }
  std::span<const TransformPlan> plans() const { return plans_; }

 private:
  void plan(const StoredImage& image, std::span<const TransformSpec> transforms, const SampleRandom& random);
  void decode_jpeg(std::span<const TransformSpec> transforms, std::span<const RgbSlot> slots);
  // How much smaller the image may be decoded for all transforms.
  int32_t shrink_of(std::span<const TransformSpec> transforms) const;
  void decode_raw(const StoredImage& image, const TransformSpec& transform, const TransformPlan& plan,
                  RgbSlot slot);
  void mark(Stage stage) {
    if (clock_ != nullptr) clock_->mark(stage);
  }

  DecodeMode mode_;
  StageClock* clock_;
  JpegDecoder decoder_;
  std::vector<Resampler> resamplers_;  // one a transform
  std::vector<TransformPlan> plans_;
  std::vector<Rect> regions_;
  Extent size_;
  ScratchBytes pixels_;  // of raw images
};

}  // namespace stoker

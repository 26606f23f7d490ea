// One image through one or several transforms: header, geometry, region decode, resample, colours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/stored_image.h"
#include "core/clocks/stage_clock.h"
#include "core/transforms/region_decoder.h"
#include "core/transforms/transform.h"

namespace stoker {

// Keeps its scratch memory from image to image; one per thread.
class TransformDecoder {
 public:
  // What it does is marked on `clock`, which the caller keeps, if there is one. Pixels of kI16 are exact in
  // both modes of decoding.
  explicit TransformDecoder(DecodeMode decode = DecodeMode::kExact, StageClock* clock = nullptr,
                            PixelMode mode = PixelMode::kRgb)
      : decode_(decode), mode_(mode), clock_(clock), regions_(clock) {}

  // Writes the rows of each transform to its slot, in the mode of pixels; the image is decoded once, and only
  // as much of it as the transforms need. Throws kBadImage or kImageTooLarge, also for a raw image whose
  // bytes are not those of its size; and kBadArgument unless there is a transform, and a slot for each, and
  // for changes of pixels in a mode that has none of the kind.
  void decode(const StoredImage& image, std::span<const TransformSpec> transforms, const SampleRandom& random,
              uint64_t max_pixels, std::span<const RgbSlot> slots);

  // Another image of the sample that `first` has just decoded, with the same crops and the same choices.
  // Throws kBadExample unless it is as large; the rest as decode().
  void decode_as(const TransformDecoder& first, const StoredImage& image,
                 std::span<const TransformSpec> transforms, const SampleRandom& random, uint64_t max_pixels,
                 std::span<const RgbSlot> slots);

  // The whole image as it is stored, as rows without gaps, in `pixels`; its size.
  Extent decode_whole(std::span<const uint8_t> file, uint64_t max_pixels, std::vector<uint8_t>& pixels);

  // Of the last image: its size as it was turned, and what the transforms showed of it.
  Extent size() const { return size_; }
  std::span<const TransformPlan> plans() const { return plans_; }

 private:
  // Reads the size of the image.
  void open(const StoredImage& image, std::span<const TransformSpec> transforms, uint64_t max_pixels,
            std::span<const RgbSlot> slots);
  void plan(const StoredImage& image, std::span<const TransformSpec> transforms, const SampleRandom& random);
  // What was opened and planned.
  void run(const StoredImage& image, std::span<const TransformSpec> transforms, const SampleRandom& random,
           std::span<const RgbSlot> slots);
  // Of RGB and L, in a slot.
  void change(const TransformSpec& transform, const SampleRandom& random, RgbSlot slot);

  DecodeMode decode_;
  PixelMode mode_;
  StageClock* clock_;
  RegionDecoder regions_;
  std::vector<TransformPlan> plans_;
  Extent size_;
  ScratchBytes grey_;  // while its colours are changed
};

}  // namespace stoker

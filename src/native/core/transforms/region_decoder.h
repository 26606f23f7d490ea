// Parts of one image, each resampled into memory of the caller. Rows are decoded once, and only those that
// the parts need.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/stored_image.h"
#include "core/clocks/stage_clock.h"
#include "core/images/image_decoder.h"
#include "core/operations/operation.h"
#include "core/resize/resample_modes.h"

namespace stoker {

// Keeps its scratch memory from image to image; one per thread.
class RegionDecoder {
 public:
  // Times are recorded with `clock`, if there is one; the caller owns it.
  explicit RegionDecoder(StageClock* clock = nullptr) : clock_(clock) {}

  // Reads the header of `file`, which must live until its pixels were written; its size, turned as all parts
  // of it are. Throws what ImageDecoder::open() throws.
  Extent open(std::span<const uint8_t> file, uint64_t max_pixels, PixelMode mode,
              Orientation orientation = {});

  // Which parts are wanted of the opened image, one at least. Pixels of kI16 are exact in both modes of
  // decoding. Throws what ResamplePlan::plan_part() throws.
  void plan(std::span<const TransformPlan> parts, DecodeMode decode);

  // Writes each of these parts to its slot, in the mode: once per open(). Throws kBadImage where the pixels
  // would not be those of the file; some of them may be written then.
  void write(std::span<const TransformPlan> parts, std::span<const RgbSlot> slots,
             EntryPoints* entries = nullptr);

  // Instead of both: a part of the opened image as it is.
  void copy(Rect part, RgbSlot slot);

  // Instead of all three: a part of an image that is stored as pixels, turned by its orientation.
  void write_raw(const StoredImage& image, const TransformPlan& part, PixelMode mode, DecodeMode decode,
                 RgbSlot slot);

 private:
  Rect plan_part(size_t i, const TransformPlan& part, Sampling sampling);
  RgbxView raw_rows(const StoredImage& image, Rect rows, PixelMode mode);
  void set_mode(PixelMode mode);
  ModeResampler& resampler(size_t part);
  void turn(Stage stage) {
    if (clock_ != nullptr) clock_->mark_turn(stage);
  }

  StageClock* clock_;
  ImageDecoder decoder_;
  PixelMode mode_ = PixelMode::kRgb;
  std::vector<ModeResampler> resamplers_;  // of the mode, one for each part
  std::vector<Rect> regions_;              // that the parts need, at 1/shrink_ of the image's size
  int32_t shrink_ = 1;
  ScratchBytes pixels_;  // of raw images
  ScratchBytes turned_;  // the same
};

}  // namespace stoker

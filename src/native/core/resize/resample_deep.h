// Resampling of grey pixels of 16 bits, bit-equal to crop(box).resize(size) of Pillow 13 in mode I;16.
//
// Pillow's rule: two passes in the order of 8-bit images, each rounded to whole numbers of 0 .. 65,535; sums
// of doubles, in the order of the pixels.
#pragma once

#include <cstdint>

#include "core/base/pixels.h"
#include "core/base/scratch_bytes.h"
#include "core/resize/resample_plan.h"

namespace stoker {

// One resize after another, with scratch memory that is kept. Its interface is that of Resampler; what
// carries I;16 comes in, and uint16_t without gaps goes out, row by row. Weights are always whole.
class DeepResampler {
 public:
  Rect plan_part(Filter filter, Rect part, Extent out, Rect window, Sampling sampling);
  void start(bool flip, RgbSlot dst);
  void add(RgbxView src, int32_t first);
  void finish();

 private:
  size_t columns() const { return plan_.across().size(); }
  void pass_across(const uint16_t* from, uint16_t* to) const;  // a row
  void pass_down(const uint16_t* from, size_t width, size_t y, uint16_t* to) const;
  void write(const uint16_t* from, int32_t y) const;

  ResamplePlan plan_{true};
  bool flip_ = false;
  RgbSlot dst_;
  ScratchBytes row_;      // of the input
  ScratchBytes between_;  // rows that wait for the pass down: after the one across, or before it
  ScratchBytes result_;   // a row
};

}  // namespace stoker

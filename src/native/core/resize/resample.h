// Resampling of RGBX pixels, bit-equal to crop(box).resize(size) of Pillow 13 on 8-bit images: two passes,
// each rounded to 8 bits, with int32 sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/pixels.h"
#include "core/base/scratch_bytes.h"
#include "core/resize/resample_plan.h"

namespace stoker {

// The two passes, for one instruction set. All sets give the same bytes.
struct ResampleKernels {
  const char* name;
  // dst RGB rows <- src RGBX rows; src column 0 is input column `origin`. With `flip`, output column 0 is
  // taps' last.
  void (*horizontal)(const TapsView& taps, RgbxView src, int32_t origin, bool flip, RgbSlot dst);
  // dst rows <- src rows of `bytes` bytes each; src row 0 is input row `origin`.
  void (*vertical)(const TapsView& taps, const uint8_t* src, size_t stride, int32_t origin, size_t bytes,
                   RgbSlot dst);
};
// Those this processor can run, the fastest first; tests run one body over all of them.
const std::vector<const ResampleKernels*>& resample_kernels();

// One resize after another, with scratch memory that is kept. Not for two threads at once.
class Resampler {
 public:
  explicit Resampler(const ResampleKernels& kernels = *resample_kernels().front()) : kernels_(kernels) {}

  // As ResamplePlan has them. What the result of plan_part() says has to be given to run().
  void plan(Filter filter, Extent in, Extent out, Rect window) { plan_.plan(filter, in, out, window); }
  Rect plan_part(Filter filter, Rect part, Extent out, Rect window, Sampling sampling) {
    return plan_.plan_part(filter, part, out, window, sampling);
  }
  Rect needed() const { return plan_.needed(); }
  bool copies() const { return plan_.copies(); }

  // Writes the window. `src` holds the pixels of needed(), readable kRgbxPadding bytes past its end.
  void run(RgbxView src, bool flip, RgbSlot dst);

  // The same from rows that come one stretch after another, `first` being the row of needed() that `src`
  // begins with; they may begin anew with row 0, and then those that come last count. finish() writes what
  // add() did not.
  void start(bool flip, RgbSlot dst);
  void add(RgbxView src, int32_t first);
  void finish();

 private:
  void copy(RgbxView src, int32_t first) const;
  void pass_across(RgbxView src, RgbSlot out) const;
  void drop_used();
  void write_complete();
  void pick(const uint8_t* from, uint8_t* to) const;
  void keep(RgbxView src, int32_t first);
  void run_down_first(RgbxView src);
  RgbSlot scratch(size_t stride, size_t rows);

  // Rows between the two passes, of which only those are held that outputs wait for.
  struct Between {
    RgbSlot rows;
    int32_t most = 0;     // that fit
    int32_t first = 0;    // the row of needed() that they begin with
    int32_t count = 0;    // that are there
    int32_t written = 0;  // outputs
  };

  const ResampleKernels& kernels_;
  ResamplePlan plan_;
  bool flip_ = false;
  RgbSlot dst_;
  Between between_;
  ScratchBytes scratch_;  // what the first pass leaves for the second
  ScratchBytes kept_;     // all rows, where the first pass goes down
};

}  // namespace stoker

// Resampling of RGBX pixels, bit-equal to crop(box).resize(size) of Pillow 13 on 8-bit images.
//
// Pillow's rule (its C source, Resample.c, read for the facts): two passes, each rounded to 8 bits; weights
// are double, normalised to sum 1, then rounded to 22 fractional bits; sums are int32. Horizontally first,
// except when the height shrinks by more than twice what the width does (Pillow before 13 never made that
// exception). Nearest is another rule: the source column of output column x is int(0.5 s + s + s + ...), s =
// in / out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/pixels.h"
#include "core/base/scratch_bytes.h"

namespace stoker {

// The most pixels that a side may be resized to, of which only a window need be shown. Nearest takes time in
// proportion to them.
inline constexpr int32_t kMostResized = 1 << 28;

enum class Filter { kNearest, kBox, kBilinear, kBicubic, kLanczos };

// One axis: output i is the weighted sum of inputs first[i] .. first[i] + count[i] - 1.
//
// `weights` holds `stride` values an output, zero from count[i] on; `stride` is a multiple of 4. A weight w
// is also given as two 16-bit parts, w = high * 2048 + low, because 16-bit multiply-and-add is what SIMD
// units have. Plain pointers: see core/base/kernels.h.
struct TapsView {
  const int32_t* first;
  const int32_t* count;
  const int32_t* weights;
  const int16_t* high;
  const int16_t* low;
  size_t size;  // outputs
  size_t stride;
  bool coarse;  // the low parts are zero: weights have 11 fractional bits
};
struct Taps {
  std::vector<int32_t> first;
  std::vector<int32_t> count;
  std::vector<int32_t> weights;
  std::vector<int16_t> high;
  std::vector<int16_t> low;
  std::vector<double> exact;  // of one output, while it is planned
  size_t stride = 0;
  bool coarse = false;
  bool identity = false;  // every output is its own input: the pass is a copy

  size_t size() const { return first.size(); }
  TapsView view() const;
};
inline constexpr int kWeightBits = 22;
inline constexpr int kSplitBits = 11;

// A stretch of one axis, in pixels.
struct Span {
  double begin = 0.0;
  double length = 0.0;
};

// How closely a part of an image is looked at.
struct Sampling {
  int32_t shrink = 1;
  bool coarse = false;  // always so where shrink is not 1
};

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

  // Prepares in -> out with `filter`, of which only `window` (in output pixels) will be produced. Throws
  // kBadArgument for a side of `in` or `out` that is not 1 .. kMostResized, and for a window that is empty or
  // leaves `out`; plan_part() does, too.
  void plan(Filter filter, Extent in, Extent out, Rect window);

  // Prepares a part of an image -> out. The result is what of the image, at 1/`shrink` of its size, has to be
  // given to run(); nothing beyond the part is looked at. Coarse weights have 11 fractional bits and not 22.
  Rect plan_part(Filter filter, Rect part, Extent out, Rect window, Sampling sampling);

  // The part of the input that the window depends on.
  Rect needed() const { return needed_; }

  // Writes the window. `src` holds the pixels of needed(), readable kRgbxPadding bytes past its end.
  void run(RgbxView src, bool flip, RgbSlot dst);

  // The same from the whole input, as RGB whose rows lie `stride` bytes apart.
  void run_rgb(const uint8_t* pixels, size_t stride, bool flip, RgbSlot dst);

 private:
  void plan_coarsely(Filter filter, const Span& across, const Span& down, Extent out, Rect window);
  void finish_plan(const Span& across, const Span& down, Extent out, Rect window);
  void copy(RgbxView src, bool flip, RgbSlot dst) const;
  void pick(const uint8_t* from, bool flip, uint8_t* to) const;
  void run_down_first(RgbxView src, bool flip, RgbSlot dst);
  RgbSlot scratch(size_t stride, size_t rows);

  const ResampleKernels& kernels_;
  Taps across_;
  Taps down_;
  Rect needed_;
  bool nearest_ = false;
  bool down_first_ = false;
  ScratchBytes between_;  // what the first pass leaves for the second
};

}  // namespace stoker

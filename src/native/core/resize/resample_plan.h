// Which inputs an output of a resize depends on, and with which weights: those of Pillow 13.
//
// Pillow's rule (its C source, Resample.c, read for the facts): weights are double, normalised to sum 1, and
// for 8-bit images rounded to 22 fractional bits. Horizontally first, except when the height shrinks by more
// than twice what the width does (Pillow before 13 never made that exception). Nearest is another rule: the
// source column of output column x is int(0.5 s + s + s + ...), s = in / out; of 16 bits int(s (x + 0.5)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/pixels.h"

namespace stoker {

// The most pixels that a side may be resized to, of which only a window need be shown. Nearest takes time in
// proportion to them.
inline constexpr int32_t kMostResized = 1 << 28;

enum class Filter { kNearest, kBox, kBilinear, kBicubic, kLanczos };

// By the name that people type. Throws kBadArgument for another.
Filter filter_named(const std::string& name);

// One axis: output i is the weighted sum of inputs first[i] .. first[i] + count[i] - 1.
//
// `weights` holds `stride` values an output, zero from count[i] on; `stride` is a multiple of 4. A weight w
// is also given as two 16-bit parts, w = high * 2048 + low, and as three bytes with a sign, w = first * 65536
// + second * 256 + third, because multiply-and-add of these is what SIMD units have: `digits` holds, for
// every four weights, their four firsts, then the seconds, then the thirds. Plain pointers: see
// core/base/kernels.h.
struct TapsView {
  const int32_t* first;
  const int32_t* count;
  const int32_t* weights;
  const int16_t* high;
  const int16_t* low;
  const int8_t* digits;
  size_t size;  // outputs
  size_t stride;
  bool coarse;  // the low parts and the thirds are zero: weights have 11 fractional bits
};
struct Taps {
  std::vector<int32_t> first;
  std::vector<int32_t> count;
  std::vector<int32_t> weights;
  std::vector<int16_t> high;
  std::vector<int16_t> low;
  std::vector<int8_t> digits;
  std::vector<double> exact;  // of one output, while it is planned; of all, instead of others, if `deep`
  size_t stride = 0;
  bool deep = false;  // for pixels of 16 bits
  bool coarse = false;
  bool identity = false;  // every output is its own input: the pass is a copy

  size_t size() const { return first.size(); }
  TapsView view() const { return view(0, size()); }
  // Of outputs begin .. begin + outputs - 1.
  TapsView view(size_t begin, size_t outputs) const;
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

// One resize.
class ResamplePlan {
 public:
  // With `deep`, weights are left as doubles, for pixels of 16 bits.
  explicit ResamplePlan(bool deep = false) { across_.deep = down_.deep = deep; }

  // Of in -> out with `filter`, of which only `window` (in output pixels) is wanted. Throws kBadArgument for
  // a side of `in` or `out` that is not 1 .. kMostResized, and for a window that is empty or leaves `out`;
  // plan_part() does, too.
  void plan(Filter filter, Extent in, Extent out, Rect window);

  // Of a part of an image -> out. The result is what of the image, at 1/`shrink` of its size, the window
  // depends on; nothing beyond the part is looked at. Coarse weights have 11 fractional bits and not 22.
  Rect plan_part(Filter filter, Rect part, Extent out, Rect window, Sampling sampling);

  const Taps& across() const { return across_; }
  const Taps& down() const { return down_; }
  // The part of the input that the window depends on.
  Rect needed() const { return needed_; }
  // Every output is one of the inputs.
  bool copies() const { return nearest_ || (across_.identity && down_.identity); }
  // The pass down comes before the one across.
  bool goes_down_first() const { return !copies() && !across_.identity && !down_.identity && down_first_; }

 private:
  void plan_coarsely(Filter filter, const Span& across, const Span& down, Extent out, Rect window);
  void finish_plan(const Span& across, const Span& down, Extent out, Rect window);

  Taps across_;
  Taps down_;
  Rect needed_;
  bool nearest_ = false;
  bool down_first_ = false;
};

}  // namespace stoker

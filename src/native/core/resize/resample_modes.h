// Resampling of pixels of each mode, bit-equal to crop(box).resize(size) of Pillow 13 in that mode.
#pragma once

#include <cstdint>
#include <variant>

#include "core/base/pixel_mode.h"
#include "core/base/pixels.h"
#include "core/base/scratch_bytes.h"
#include "core/resize/resample.h"
#include "core/resize/resample_deep.h"

namespace stoker {

// Grey is three channels that are the same, of which one is taken.
class GreyResampler {
 public:
  Rect plan_part(Filter filter, Rect part, Extent out, Rect window, Sampling sampling);
  void start(bool flip, RgbSlot dst);
  void add(RgbxView src, int32_t first) { resampler_.add(src, first); }
  void finish();

 private:
  Resampler resampler_;
  Extent size_;  // of the window
  RgbSlot dst_;
  ScratchBytes rows_;
};

// Colours are resampled as they weigh, multiplied with alpha, unless pixels are only taken; and alpha as an
// image of its own.
class AlphaResampler {
 public:
  Rect plan_part(Filter filter, Rect part, Extent out, Rect window, Sampling sampling);
  // `opaque`: the fourth byte of all that comes is 255.
  void start(bool flip, RgbSlot dst, bool opaque);
  void add(RgbxView src, int32_t first);
  void finish();

 private:
  Resampler colors_;
  Resampler alpha_;
  Extent size_;  // of the window
  RgbSlot dst_;
  bool opaque_ = false;
  ScratchBytes source_colors_, source_alpha_;
  ScratchBytes colors_rows_, alpha_rows_;
};

// Resampler's interface for one mode: rows of RGBX that carry it in, pixels of the mode end to end in each
// row out.
class ModeResampler {
 public:
  explicit ModeResampler(PixelMode mode = PixelMode::kRgb);

  Rect plan_part(Filter filter, Rect part, Extent out, Rect window, Sampling sampling) {
    return std::visit([&](auto& r) { return r.plan_part(filter, part, out, window, sampling); }, resampler_);
  }
  // `opaque`: the alpha of all that comes is 255, which saves work.
  void start(bool flip, RgbSlot dst, bool opaque = false);
  void add(RgbxView src, int32_t first) {
    std::visit([&](auto& r) { r.add(src, first); }, resampler_);
  }
  // All of it at once. `src` is readable kRgbxPadding bytes past its end.
  void run(RgbxView src, bool flip, RgbSlot dst);
  void finish() {
    std::visit([](auto& r) { r.finish(); }, resampler_);
  }

 private:
  std::variant<Resampler, GreyResampler, AlphaResampler, DeepResampler> resampler_;
};

}  // namespace stoker

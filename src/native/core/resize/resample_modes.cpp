#include "core/resize/resample_modes.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace stoker {
namespace {

// Rows that are split together; the resampler takes them in fours.
constexpr int32_t kSplitRows = 16;

// Pillow's MULDIV255.
uint8_t multiplied(unsigned value, unsigned alpha) {
  const unsigned product = value * alpha + 128;
  return static_cast<uint8_t>((product + (product >> 8)) >> 8);
}

uint8_t divided(unsigned value, unsigned alpha) {
  return static_cast<uint8_t>(std::min(255 * value / alpha, 255u));
}

RgbSlot take_rows(ScratchBytes& rows, Extent size) {
  const size_t stride = static_cast<size_t>(size.width) * kRgbBytes;
  return {rows.take(stride * static_cast<size_t>(size.height) + kRgbxPadding), stride};
}

RgbSlot rows_of(const ScratchBytes& rows, Extent size) {
  return {rows.data(), static_cast<size_t>(size.width) * kRgbBytes};
}

// One row of RGBA as two of RGBX.
void split_alpha(const uint8_t* rgba, size_t pixels, bool multiply, uint8_t* colors, uint8_t* alpha) {
  for (size_t at = 0; at < pixels * kRgbxBytes; at += kRgbxBytes) {
    const uint8_t weight = rgba[at + 3];
    for (size_t c = 0; c < kRgbBytes; ++c) {
      colors[at + c] = multiply ? multiplied(rgba[at + c], weight) : rgba[at + c];
      alpha[at + c] = weight;
    }
  }
}

// As Pillow's RGBa to RGBA.
void join_alpha(const uint8_t* colors, const uint8_t* alpha, size_t pixels, bool divide, uint8_t* rgba) {
  for (size_t x = 0; x < pixels; ++x, colors += kRgbBytes, alpha += kRgbBytes, rgba += kRgbxBytes) {
    const uint8_t weight = rgba[3] = *alpha;
    const bool whole = !divide || weight == 0 || weight == 255;
    for (size_t c = 0; c < kRgbBytes; ++c) rgba[c] = whole ? colors[c] : divided(colors[c], weight);
  }
}

}  // namespace

Rect GreyResampler::plan_part(Filter filter, Rect part, Extent out, Rect window, Sampling sampling) {
  size_ = {window.width, window.height};
  return resampler_.plan_part(filter, part, out, window, sampling);
}

void GreyResampler::start(bool flip, RgbSlot dst) {
  dst_ = dst;
  resampler_.start(flip, take_rows(rows_, size_));
}

void GreyResampler::finish() {
  resampler_.finish();
  const RgbSlot rows = rows_of(rows_, size_);
  const auto width = static_cast<size_t>(size_.width);
  for (int32_t y = 0; y < size_.height; ++y) {
    const uint8_t* from = rows.row(y);
    uint8_t* to = dst_.row(y);
    for (size_t x = 0; x < width; ++x) to[x] = from[x * kRgbBytes];
  }
}

Rect AlphaResampler::plan_part(Filter filter, Rect part, Extent out, Rect window, Sampling sampling) {
  size_ = {window.width, window.height};
  alpha_.plan_part(filter, part, out, window, sampling);
  return colors_.plan_part(filter, part, out, window, sampling);
}

void AlphaResampler::start(bool flip, RgbSlot dst, bool opaque) {
  dst_ = dst;
  opaque_ = opaque;
  colors_.start(flip, take_rows(colors_rows_, size_));
  if (!opaque) alpha_.start(flip, take_rows(alpha_rows_, size_));
}

void AlphaResampler::add(RgbxView src, int32_t first) {
  if (opaque_) return colors_.add(src, first);
  const auto width = static_cast<size_t>(src.size.width);
  const size_t stride = width * kRgbxBytes;
  uint8_t* const colors = source_colors_.take(stride * kSplitRows + kRgbxPadding);
  uint8_t* const alpha = source_alpha_.take(stride * kSplitRows + kRgbxPadding);
  for (int32_t done = 0; done < src.size.height;) {
    const int32_t rows = std::min(kSplitRows, src.size.height - done);
    for (int32_t y = 0; y < rows; ++y) {
      const size_t at = static_cast<size_t>(y) * stride;
      split_alpha(src.row(done + y), width, !colors_.copies(), colors + at, alpha + at);
    }
    colors_.add({colors, stride, {src.size.width, rows}}, first + done);
    alpha_.add({alpha, stride, {src.size.width, rows}}, first + done);
    done += rows;
  }
}

void AlphaResampler::finish() {
  colors_.finish();
  const RgbSlot colors = rows_of(colors_rows_, size_);
  const auto width = static_cast<size_t>(size_.width);
  if (opaque_) {
    for (int32_t y = 0; y < size_.height; ++y) {
      rgb_to_rgbx(colors.row(y), width, dst_.row(y));
      to_mode(PixelMode::kRgba, dst_.row(y), width, dst_.row(y));
    }
    return;
  }
  alpha_.finish();
  const RgbSlot alpha = rows_of(alpha_rows_, size_);
  for (int32_t y = 0; y < size_.height; ++y) {
    join_alpha(colors.row(y), alpha.row(y), width, !colors_.copies(), dst_.row(y));
  }
}

ModeResampler::ModeResampler(PixelMode mode) {
  switch (mode) {
    case PixelMode::kRgb:
      return;
    case PixelMode::kL:
      resampler_.emplace<GreyResampler>();
      return;
    case PixelMode::kRgba:
      resampler_.emplace<AlphaResampler>();
      return;
    case PixelMode::kI16:
      resampler_.emplace<DeepResampler>();
      return;
  }
}

void ModeResampler::start(bool flip, RgbSlot dst, bool opaque) {
  if (auto* alpha = std::get_if<AlphaResampler>(&resampler_)) return alpha->start(flip, dst, opaque);
  std::visit(
      [&](auto& r) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(r)>, AlphaResampler>) r.start(flip, dst);
      },
      resampler_);
}

void ModeResampler::run(RgbxView src, bool flip, RgbSlot dst) {
  if (auto* rgb = std::get_if<Resampler>(&resampler_)) return rgb->run(src, flip, dst);
  start(flip, dst);
  add(src, 0);
  finish();
}

}  // namespace stoker

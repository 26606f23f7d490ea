#include "core/transforms/region_decoder.h"

#include <algorithm>

#include "core/transforms/raw_pixels.h"

namespace stoker {
namespace {

// The smallest rectangle around all of them.
Rect around(std::span<const Rect> regions) {
  Rect all = regions.front();
  for (const Rect& region : regions) {
    const int32_t x = std::min(all.x, region.x), y = std::min(all.y, region.y);
    all = {x, y, std::max(all.x + all.width, region.x + region.width) - x,
           std::max(all.y + all.height, region.y + region.height) - y};
  }
  return all;
}

// How much smaller an image may be decoded for all parts.
int32_t shrink_for_all(std::span<const TransformPlan> parts) {
  int32_t shrink = 8;
  for (const TransformPlan& part : parts) {
    if (part.filter == Filter::kNearest) return 1;
    shrink = std::min(shrink, shrink_for({part.crop.width, part.crop.height}, part.resized));
  }
  return shrink;
}

}  // namespace

Extent RegionDecoder::open(std::span<const uint8_t> file, uint64_t max_pixels, PixelMode mode,
                           Orientation orientation) {
  const Extent size = decoder_.open(file, max_pixels, mode, orientation);
  set_mode(mode);
  return size;
}

void RegionDecoder::set_mode(PixelMode mode) {
  if (mode != mode_) resamplers_.clear();
  mode_ = mode;
}

ModeResampler& RegionDecoder::resampler(size_t part) {
  while (resamplers_.size() <= part) resamplers_.emplace_back(mode_);
  return resamplers_[part];
}

Rect RegionDecoder::plan_part(size_t i, const TransformPlan& part, Sampling sampling) {
  return resampler(i).plan_part(part.filter, part.crop, part.resized, part.window, sampling);
}

void RegionDecoder::plan(std::span<const TransformPlan> parts, DecodeMode decode) {
  const bool fast = decode == DecodeMode::kFast && mode_ != PixelMode::kI16;
  shrink_ = fast ? std::min(decoder_.most_shrink(), shrink_for_all(parts)) : 1;
  regions_.clear();
  for (size_t i = 0; i < parts.size(); ++i) regions_.push_back(plan_part(i, parts[i], {shrink_, fast}));
}

void RegionDecoder::write(std::span<const TransformPlan> parts, std::span<const RgbSlot> slots,
                          EntryPoints* entries) {
  const Rect all = around(regions_);
  for (size_t i = 0; i < parts.size(); ++i) {
    resamplers_[i].start(parts[i].flip, slots[i], decoder_.is_opaque());
  }
  decoder_.start(all, shrink_, entries);
  for (int32_t end = 0; end < all.height;) {
    const RgbxRows rows = decoder_.next();
    end = rows.first + rows.pixels.size.height;
    turn(Stage::kDecode);
    for (size_t i = 0; i < parts.size(); ++i) {
      const Rect& region = regions_[i];
      const int32_t above = region.y - all.y;  // rows of `all` that are not the region's
      const int32_t first = std::max(rows.first, above), last = std::min(end, above + region.height);
      if (first >= last) continue;
      const uint8_t* pixels =
          rows.pixels.row(first - rows.first) + static_cast<size_t>(region.x - all.x) * kRgbxBytes;
      resamplers_[i].add({pixels, rows.pixels.stride, {region.width, last - first}}, first - above);
    }
    turn(Stage::kResample);
  }
  for (size_t i = 0; i < parts.size(); ++i) resamplers_[i].finish();
}

void RegionDecoder::copy(Rect part, RgbSlot slot) {
  decoder_.start(part);
  for (int32_t end = 0; end < part.height;) {
    const RgbxRows rows = decoder_.next();
    for (int32_t y = 0; y < rows.pixels.size.height; ++y) {
      pack(mode_, rows.pixels.row(y), static_cast<size_t>(part.width), slot.row(rows.first + y));
    }
    end = rows.first + rows.pixels.size.height;
  }
}

RgbxView RegionDecoder::raw_rows(const StoredImage& image, Rect rows, PixelMode mode) {
  const Rect stored = image.orientation.stored(rows, image.size);
  const RgbxView pixels = to_rgbx(image, stored, mode, pixels_);
  if (!image.orientation.turns()) return pixels;
  const size_t stride = static_cast<size_t>(rows.width) * kRgbxBytes;
  uint8_t* const out = turned_.take(stride * static_cast<size_t>(rows.height) + kRgbxPadding);
  image.orientation.turn({pixels, 0}, pixels.size, out);
  return {out, stride, {rows.width, rows.height}};
}

void RegionDecoder::write_raw(const StoredImage& image, const TransformPlan& part, PixelMode mode,
                              DecodeMode decode, RgbSlot slot) {
  const bool plain = mode == PixelMode::kRgb && image.mode == PixelMode::kRgb && !image.orientation.turns();
  if (plain && part.resized == Extent{part.crop.width, part.crop.height}) {  // nothing to resample
    const Rect region{part.crop.x + part.window.x, part.crop.y + part.window.y, part.window.width,
                      part.window.height};
    return copy_rgb(image, region, part.flip, slot);
  }
  set_mode(mode);
  const Rect region = plan_part(0, part, {1, decode == DecodeMode::kFast && mode != PixelMode::kI16});
  resamplers_[0].start(part.flip, slot);
  const auto fit = static_cast<int32_t>(kBandBytes / (static_cast<size_t>(region.width) * kRgbxBytes));
  const int32_t most = (fit / kRowGroup + 1) * kRowGroup;
  for (int32_t y = 0; y < region.height; y += most) {
    const int32_t rows = std::min(most, region.height - y);
    resamplers_[0].add(raw_rows(image, {region.x, region.y + y, region.width, rows}, mode), y);
  }
  resamplers_[0].finish();
}

}  // namespace stoker

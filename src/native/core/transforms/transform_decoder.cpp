#include "core/transforms/transform_decoder.h"

#include <algorithm>
#include <string>

#include "core/base/errors.h"
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

// The part `region` of pixels that are those of `all`.
RgbxView part(const RgbxView& pixels, Rect all, Rect region) {
  return {pixels.row(region.y - all.y) + static_cast<size_t>(region.x - all.x) * kRgbxBytes,
          pixels.stride,
          {region.width, region.height}};
}

}  // namespace

int32_t ViewDecoder::shrink_of(std::span<const ViewSpec> views) const {
  if (mode_ == DecodeMode::kExact) return 1;
  int32_t shrink = 8;
  for (size_t i = 0; i < views.size(); ++i) {
    const ViewPlan& plan = plans_[i];
    if (views[i].filter == Filter::kNearest) return 1;
    shrink = std::min(shrink, shrink_for({plan.crop.width, plan.crop.height}, plan.resized));
  }
  return shrink;
}

void ViewDecoder::plan(const StoredImage& image, std::span<const ViewSpec> views,
                       const SampleRandom& random) {
  if (resamplers_.size() < views.size()) resamplers_.resize(views.size());
  plans_.clear();
  for (size_t i = 0; i < views.size(); ++i) {
    plans_.push_back(plan_view(views[i], size_, random.in_view(static_cast<uint8_t>(i)), image.object));
  }
}

void ViewDecoder::decode(const StoredImage& image, std::span<const ViewSpec> views,
                         const SampleRandom& random, uint64_t max_pixels, std::span<const RgbSlot> slots) {
  if (image.encoding == ImageEncoding::kJpeg) {
    size_ = decoder_.open(image.bytes, max_pixels);
    plan(image, views, random);
    decode_jpeg(views, slots);
  } else {
    check_pixels(image, max_pixels);
    size_ = image.size;
    plan(image, views, random);
    for (size_t i = 0; i < views.size(); ++i) decode_raw(image, views[i], plans_[i], slots[i]);
  }
  for (size_t i = 0; i < views.size(); ++i) {
    if (!views[i].jitter.on()) continue;
    apply_jitter(plan_jitter(views[i].jitter, random.in_view(static_cast<uint8_t>(i))), slots[i],
                 views[i].out);
  }
  mark(Stage::kResample);
}

Extent ViewDecoder::decode_whole(std::span<const uint8_t> jpeg, uint64_t max_pixels,
                                 std::vector<uint8_t>& pixels) {
  const Extent size = decoder_.open(jpeg, max_pixels);
  const RgbxView view = decoder_.decode({0, 0, size.width, size.height});
  const auto width = static_cast<size_t>(size.width);
  pixels.resize(width * static_cast<size_t>(size.height) * kRgbBytes);
  uint8_t* to = pixels.data();
  for (int32_t y = 0; y < size.height; ++y) {
    const uint8_t* from = view.row(y);
    for (size_t x = 0; x < width; ++x, from += kRgbxBytes, to += kRgbBytes) std::copy_n(from, kRgbBytes, to);
  }
  return size;
}

void ViewDecoder::check_pixels(const StoredImage& image, uint64_t max_pixels) {
  if (image.bytes.size() / kRgbBytes > max_pixels) {
    throw Error(ErrorCode::kImageTooLarge, "The image has " + std::to_string(image.bytes.size() / kRgbBytes) +
                                               " pixels; the limit is " + std::to_string(max_pixels) +
                                               " (raise max_pixels to accept it)");
  }
}

void ViewDecoder::decode_jpeg(std::span<const ViewSpec> views, std::span<const RgbSlot> slots) {
  regions_.clear();
  const Sampling sampling{shrink_of(views), mode_ == DecodeMode::kFast};
  for (size_t i = 0; i < views.size(); ++i) {
    const ViewPlan& plan = plans_[i];
    regions_.push_back(
        resamplers_[i].plan_part(views[i].filter, plan.crop, plan.resized, plan.window, sampling));
  }
  const Rect all = around(regions_);
  const RgbxView pixels = decoder_.decode(all, sampling.shrink);
  mark(Stage::kDecode);
  for (size_t i = 0; i < views.size(); ++i) {
    resamplers_[i].run(part(pixels, all, regions_[i]), plans_[i].flip, slots[i]);
  }
}

void ViewDecoder::decode_raw(const StoredImage& image, const ViewSpec& view, const ViewPlan& plan,
                             RgbSlot slot) {
  if (plan.resized == Extent{plan.crop.width, plan.crop.height}) {  // nothing to resample
    const Rect part{plan.crop.x + plan.window.x, plan.crop.y + plan.window.y, plan.window.width,
                    plan.window.height};
    return copy_rgb(image, part, plan.flip, slot);
  }
  Resampler& resampler = resamplers_.front();
  const Rect region =
      resampler.plan_part(view.filter, plan.crop, plan.resized, plan.window, {1, mode_ == DecodeMode::kFast});
  resampler.run(to_rgbx(image, region, pixels_), plan.flip, slot);
}

}  // namespace stoker

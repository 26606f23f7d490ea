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

void check_pixels(const StoredImage& image) {
  if (fits(image)) return;
  throw Error(ErrorCode::kBadImage, std::to_string(image.bytes.size()) + " bytes of pixels are not " +
                                        std::to_string(image.size.height) + " x " +
                                        std::to_string(image.size.width) + " x 3 (height, width, channels)");
}

}  // namespace

int32_t TransformDecoder::shrink_of(std::span<const TransformSpec> transforms) const {
  if (mode_ == DecodeMode::kExact) return 1;
  int32_t shrink = 8;
  for (size_t i = 0; i < transforms.size(); ++i) {
    const TransformPlan& plan = plans_[i];
    if (transforms[i].filter == Filter::kNearest) return 1;
    shrink = std::min(shrink, shrink_for({plan.crop.width, plan.crop.height}, plan.resized));
  }
  return shrink;
}

void TransformDecoder::plan(const StoredImage& image, std::span<const TransformSpec> transforms,
                            const SampleRandom& random) {
  if (resamplers_.size() < transforms.size()) resamplers_.resize(transforms.size());
  plans_.clear();
  for (size_t i = 0; i < transforms.size(); ++i) {
    plans_.push_back(
        plan_transform(transforms[i], size_, random.in_transform(static_cast<uint8_t>(i)), image.object));
  }
}

void TransformDecoder::decode(const StoredImage& image, std::span<const TransformSpec> transforms,
                              const SampleRandom& random, uint64_t max_pixels,
                              std::span<const RgbSlot> slots) {
  if (transforms.empty() || slots.size() != transforms.size()) {
    throw Error(ErrorCode::kBadArgument, std::to_string(slots.size()) + " slots for the pixels of " +
                                             std::to_string(transforms.size()) + " transforms");
  }
  if (image.encoding == ImageEncoding::kJpeg) {
    size_ = decoder_.open(image.bytes, max_pixels);
    plan(image, transforms, random);
    decode_jpeg(transforms, slots);
  } else {
    check_pixels(image);
    refuse_more_pixels(image.size, max_pixels);
    size_ = image.size;
    plan(image, transforms, random);
    for (size_t i = 0; i < transforms.size(); ++i) decode_raw(image, transforms[i], plans_[i], slots[i]);
  }
  for (size_t i = 0; i < transforms.size(); ++i) {
    if (!transforms[i].jitter.on()) continue;
    apply_jitter(plan_jitter(transforms[i].jitter, random.in_transform(static_cast<uint8_t>(i))), slots[i],
                 transforms[i].out);
  }
  mark(Stage::kResample);
}

Extent TransformDecoder::decode_whole(std::span<const uint8_t> jpeg, uint64_t max_pixels,
                                      std::vector<uint8_t>& pixels) {
  const Extent size = decoder_.open(jpeg, max_pixels);
  const RgbxView view = decoder_.decode({0, 0, size.width, size.height});
  const auto width = static_cast<size_t>(size.width);
  pixels.resize(width * static_cast<size_t>(size.height) * kRgbBytes);
  rgbx_to_rgb(view, {pixels.data(), width * kRgbBytes});
  return size;
}

void TransformDecoder::decode_jpeg(std::span<const TransformSpec> transforms,
                                   std::span<const RgbSlot> slots) {
  regions_.clear();
  const Sampling sampling{shrink_of(transforms), mode_ == DecodeMode::kFast};
  for (size_t i = 0; i < transforms.size(); ++i) {
    const TransformPlan& plan = plans_[i];
    regions_.push_back(
        resamplers_[i].plan_part(transforms[i].filter, plan.crop, plan.resized, plan.window, sampling));
  }
  const Rect all = around(regions_);
  const RgbxView pixels = decoder_.decode(all, sampling.shrink);
  mark(Stage::kDecode);
  for (size_t i = 0; i < transforms.size(); ++i) {
    resamplers_[i].run(part(pixels, all, regions_[i]), plans_[i].flip, slots[i]);
  }
}

void TransformDecoder::decode_raw(const StoredImage& image, const TransformSpec& transform,
                                  const TransformPlan& plan, RgbSlot slot) {
  if (plan.resized == Extent{plan.crop.width, plan.crop.height}) {  // nothing to resample
    const Rect part{plan.crop.x + plan.window.x, plan.crop.y + plan.window.y, plan.window.width,
                    plan.window.height};
    return copy_rgb(image, part, plan.flip, slot);
  }
  Resampler& resampler = resamplers_.front();
  const Rect region = resampler.plan_part(transform.filter, plan.crop, plan.resized, plan.window,
                                          {1, mode_ == DecodeMode::kFast});
  resampler.run(to_rgbx(image, region, pixels_), plan.flip, slot);
}

}  // namespace stoker

#include "core/transforms/transform_decoder.h"

#include <algorithm>
#include <cstring>
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

void check_pixels(const StoredImage& image) {
  if (fits(image)) return;
  throw Error(ErrorCode::kBadImage,
              std::to_string(image.bytes.size()) + " bytes of pixels are not " +
                  std::to_string(image.size.height) + " x " + std::to_string(image.size.width) + " x " +
                  std::to_string(channels_of(image.mode)) + " (height, width, channels)");
}

}  // namespace

int32_t TransformDecoder::shrink_of(std::span<const TransformSpec> transforms) const {
  if (decode_ == DecodeMode::kExact || !decoder_.shrinks()) return 1;
  int32_t shrink = 8;
  for (size_t i = 0; i < transforms.size(); ++i) {
    const TransformPlan& plan = plans_[i];
    if (transforms[i].filter() == Filter::kNearest) return 1;
    shrink = std::min(shrink, shrink_for({plan.crop.width, plan.crop.height}, plan.resized));
  }
  return shrink;
}

void TransformDecoder::open(const StoredImage& image, std::span<const TransformSpec> transforms,
                            uint64_t max_pixels, std::span<const RgbSlot> slots) {
  if (transforms.empty() || slots.size() != transforms.size()) {
    throw Error(ErrorCode::kBadArgument, std::to_string(slots.size()) + " slots for the pixels of " +
                                             std::to_string(transforms.size()) + " transforms");
  }
  for (const TransformSpec& transform : transforms) transform.check_mode(mode_);
  while (resamplers_.size() < transforms.size()) resamplers_.emplace_back(mode_);
  if (image.encoding == ImageEncoding::kFile) {
    size_ = decoder_.open(image.bytes, max_pixels, mode_);
  } else {
    check_pixels(image);
    refuse_more_pixels(image.size, max_pixels);
    size_ = image.size;
  }
}

void TransformDecoder::plan(const StoredImage& image, std::span<const TransformSpec> transforms,
                            const SampleRandom& random) {
  plans_.clear();
  for (size_t i = 0; i < transforms.size(); ++i) {
    plans_.push_back(transforms[i].plan(size_, random.in_transform(static_cast<uint8_t>(i)), image.object));
  }
}

void TransformDecoder::run(const StoredImage& image, std::span<const TransformSpec> transforms,
                           const SampleRandom& random, std::span<const RgbSlot> slots) {
  if (image.encoding == ImageEncoding::kFile) {
    decode_file(transforms, slots, image.entries);
  } else {
    for (size_t i = 0; i < transforms.size(); ++i) decode_raw(image, transforms[i], plans_[i], slots[i]);
  }
  for (size_t i = 0; i < transforms.size(); ++i) {
    if (!transforms[i].changes_pixels()) continue;
    change(transforms[i], random.in_transform(static_cast<uint8_t>(i)), slots[i]);
  }
  turn(Stage::kResample);
  if (clock_ != nullptr) clock_->mark_turns();
}

void TransformDecoder::decode(const StoredImage& image, std::span<const TransformSpec> transforms,
                              const SampleRandom& random, uint64_t max_pixels,
                              std::span<const RgbSlot> slots) {
  open(image, transforms, max_pixels, slots);
  plan(image, transforms, random);
  run(image, transforms, random, slots);
}

void TransformDecoder::decode_as(const TransformDecoder& first, const StoredImage& image,
                                 std::span<const TransformSpec> transforms, const SampleRandom& random,
                                 uint64_t max_pixels, std::span<const RgbSlot> slots) {
  open(image, transforms, max_pixels, slots);
  if (size_ != first.size_ || transforms.size() != first.plans_.size()) {
    const auto text = [](Extent size) {
      return std::to_string(size.width) + " x " + std::to_string(size.height);
    };
    throw Error(ErrorCode::kBadExample, "it is " + text(size_) + " pixels (width x height) and the image " +
                                            text(first.size_) + "; they must be equally large");
  }
  plans_ = first.plans_;
  run(image, transforms, random, slots);
}

Extent TransformDecoder::decode_whole(std::span<const uint8_t> file, uint64_t max_pixels,
                                      std::vector<uint8_t>& pixels) {
  const Extent size = decoder_.open(file, max_pixels, mode_);
  const RgbxView view = decoder_.decode({0, 0, size.width, size.height});
  const auto width = static_cast<size_t>(size.width);
  const size_t stride = width * pixel_bytes(mode_);
  pixels.resize(stride * static_cast<size_t>(size.height));
  for (int32_t y = 0; y < size.height; ++y) {
    pack(mode_, view.row(y), width, pixels.data() + static_cast<size_t>(y) * stride);
  }
  return size;
}

// Grey as three channels is changed as Pillow changes L.
void TransformDecoder::change(const TransformSpec& transform, const SampleRandom& random, RgbSlot slot) {
  if (mode_ == PixelMode::kRgb) return transform.change(random, slot);
  const Extent size = transform.out();
  const auto width = static_cast<size_t>(size.width);
  const size_t stride = width * kRgbBytes;
  const RgbSlot rows{grey_.take(stride * static_cast<size_t>(size.height)), stride};
  for (int32_t y = 0; y < size.height; ++y) {
    for (size_t x = 0; x < width; ++x) std::memset(rows.row(y) + x * kRgbBytes, slot.row(y)[x], kRgbBytes);
  }
  transform.change(random, rows);
  for (int32_t y = 0; y < size.height; ++y) {
    for (size_t x = 0; x < width; ++x) slot.row(y)[x] = rows.row(y)[x * kRgbBytes];
  }
}

void TransformDecoder::decode_file(std::span<const TransformSpec> transforms, std::span<const RgbSlot> slots,
                                   EntryPoints* entries) {
  regions_.clear();
  const Sampling sampling{shrink_of(transforms), decode_ == DecodeMode::kFast};
  for (size_t i = 0; i < transforms.size(); ++i) {
    const TransformPlan& plan = plans_[i];
    regions_.push_back(
        resamplers_[i].plan_part(transforms[i].filter(), plan.crop, plan.resized, plan.window, sampling));
  }
  const Rect all = around(regions_);
  for (size_t i = 0; i < transforms.size(); ++i)
    resamplers_[i].start(plans_[i].flip, slots[i], decoder_.is_opaque());
  decoder_.start(all, sampling.shrink, entries);
  for (int32_t end = 0; end < all.height;) {
    const RgbxRows rows = decoder_.next();
    end = rows.first + rows.pixels.size.height;
    turn(Stage::kDecode);
    for (size_t i = 0; i < transforms.size(); ++i) {
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
  for (size_t i = 0; i < transforms.size(); ++i) resamplers_[i].finish();
}

void TransformDecoder::decode_raw(const StoredImage& image, const TransformSpec& transform,
                                  const TransformPlan& plan, RgbSlot slot) {
  const bool plain = mode_ == PixelMode::kRgb && image.mode == PixelMode::kRgb;
  if (plain && plan.resized == Extent{plan.crop.width, plan.crop.height}) {  // nothing to resample
    const Rect part{plan.crop.x + plan.window.x, plan.crop.y + plan.window.y, plan.window.width,
                    plan.window.height};
    return copy_rgb(image, part, plan.flip, slot);
  }
  ModeResampler& resampler = resamplers_.front();
  const Rect region = resampler.plan_part(transform.filter(), plan.crop, plan.resized, plan.window,
                                          {1, decode_ == DecodeMode::kFast});
  resampler.start(plan.flip, slot);
  const auto fit = static_cast<int32_t>(kBandBytes / (static_cast<size_t>(region.width) * kRgbxBytes));
  const int32_t most = (fit / kRowGroup + 1) * kRowGroup;
  for (int32_t y = 0; y < region.height; y += most) {
    const int32_t rows = std::min(most, region.height - y);
    resampler.add(to_rgbx(image, {region.x, region.y + y, region.width, rows}, mode_, pixels_), y);
  }
  resampler.finish();
}

}  // namespace stoker

#include "core/transforms/transform_decoder.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "core/base/errors.h"
#include "core/transforms/raw_pixels.h"

namespace stoker {
namespace {

void check_pixels(const StoredImage& image) {
  if (fits(image)) return;
  throw Error(ErrorCode::kBadImage,
              std::to_string(image.bytes.size()) + " bytes of pixels are not " +
                  std::to_string(image.size.height) + " x " + std::to_string(image.size.width) + " x " +
                  std::to_string(channels_of(image.mode)) + " (height, width, channels)");
}

}  // namespace

void TransformDecoder::open(const StoredImage& image, std::span<const TransformSpec> transforms,
                            uint64_t max_pixels, std::span<const RgbSlot> slots) {
  if (transforms.empty() || slots.size() != transforms.size()) {
    throw Error(ErrorCode::kBadArgument, std::to_string(slots.size()) + " slots for the pixels of " +
                                             std::to_string(transforms.size()) + " transforms");
  }
  for (const TransformSpec& transform : transforms) transform.check_mode(mode_);
  if (image.encoding == ImageEncoding::kFile) {
    size_ = regions_.open(image.bytes, max_pixels, mode_, image.orientation);
  } else {
    check_pixels(image);
    refuse_more_pixels(image.size, max_pixels);
    size_ = image.orientation.upright(image.size);
  }
}

void TransformDecoder::plan(const StoredImage& image, std::span<const TransformSpec> transforms,
                            const SampleRandom& random) {
  plans_.clear();
  std::optional<ObjectBox> object = image.object;
  if (object) object = image.orientation.upright(*object);
  for (size_t i = 0; i < transforms.size(); ++i) {
    plans_.push_back(transforms[i].plan(size_, random.in_transform(static_cast<uint8_t>(i)), object));
  }
}

void TransformDecoder::run(const StoredImage& image, std::span<const TransformSpec> transforms,
                           const SampleRandom& random, std::span<const RgbSlot> slots) {
  if (image.encoding == ImageEncoding::kFile) {
    regions_.plan(plans_, decode_);
    regions_.write(plans_, slots, image.entries);
  } else {
    for (size_t i = 0; i < plans_.size(); ++i) regions_.write_raw(image, plans_[i], mode_, decode_, slots[i]);
  }
  for (size_t i = 0; i < transforms.size(); ++i) {
    if (!transforms[i].changes_pixels()) continue;
    change(transforms[i], random.in_transform(static_cast<uint8_t>(i)), slots[i]);
  }
  if (clock_ == nullptr) return;
  clock_->mark_turn(Stage::kResample);
  clock_->mark_turns();
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
  for (size_t i = 0; i < transforms.size(); ++i) plans_[i].filter = transforms[i].filter();
  run(image, transforms, random, slots);
}

Extent TransformDecoder::decode_whole(std::span<const uint8_t> file, uint64_t max_pixels,
                                      std::vector<uint8_t>& pixels) {
  const Extent size = regions_.open(file, max_pixels, mode_);
  const size_t stride = static_cast<size_t>(size.width) * pixel_bytes(mode_);
  pixels.resize(stride * static_cast<size_t>(size.height));
  regions_.copy({0, 0, size.width, size.height}, {pixels.data(), stride});
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

}  // namespace stoker

#include "core/reencode.h"

#include <string>

#include "core/errors.h"

namespace stoker {
namespace {

// The part of `pixels` that starts at a corner. Rows stay where they are.
RgbxView cut(RgbxView pixels, Rect part) {
  return {pixels.row(part.y) + static_cast<size_t>(part.x) * kRgbxBytes,
          pixels.stride,
          {part.width, part.height}};
}

void refuse_nothing(Extent size) {
  if (size.width > 0 && size.height > 0) return;
  throw Error(ErrorCode::kBadArgument, "Cannot make an image of " + std::to_string(size.width) + " x " +
                                           std::to_string(size.height) + ": every side must be at least 1");
}

void refuse_outside(Rect part, Extent image) {
  if (part.x >= 0 && part.y >= 0 && part.width > 0 && part.height > 0 && part.width <= image.width - part.x &&
      part.height <= image.height - part.y) {
    return;
  }
  throw Error(ErrorCode::kBadArgument, "The part to re-encode is empty or leaves the image of " +
                                           std::to_string(image.width) + " x " +
                                           std::to_string(image.height));
}

bool has_inks(const JpegInfo& info) {
  return info.color == JpegColor::kCmyk || info.color == JpegColor::kYcck;
}

}  // namespace

std::vector<uint8_t> Reencoder::run(std::span<const uint8_t> jpeg, const ReencodeSpec& spec) {
  const JpegInfo info = probe_jpeg(jpeg);
  const Extent image{info.width, info.height};
  refuse_more_pixels(image, spec.max_pixels);
  refuse_outside(spec.part, image);
  refuse_nothing(spec.size);
  refuse_more_pixels(spec.size, spec.max_pixels);
  pixels_.resize(static_cast<size_t>(spec.size.width) * static_cast<size_t>(spec.size.height) * kRgbBytes +
                 kRgbxPadding);
  if (spec.decode == DecodeMode::kFast && !has_inks(info)) {
    resize_fast(jpeg, spec, image);
  } else {
    resize_exactly(jpeg, spec);
  }
  return encode_jpeg(pixels_.data(), spec.size, static_cast<int>(kRgbBytes), spec.encode);
}

void Reencoder::resize_exactly(std::span<const uint8_t> jpeg, const ReencodeSpec& spec) {
  const Extent part{spec.part.width, spec.part.height};
  resampler_.plan(spec.filter, part, spec.size, {0, 0, spec.size.width, spec.size.height});
  Rect needed = resampler_.needed();
  needed.x += spec.part.x;
  needed.y += spec.part.y;
  decoder_.open(jpeg, spec.max_pixels);
  resampler_.run(decoder_.decode(needed), false, slot(spec.size));
}

void Reencoder::resize_fast(std::span<const uint8_t> jpeg, const ReencodeSpec& spec, Extent image) {
  // Of a part, the corners must not move by fractions of a pixel, so the image is decoded in its own size.
  const bool whole = spec.part == Rect{0, 0, image.width, image.height};
  RgbxView pixels = fast_.decode(jpeg, whole ? spec.size : image, spec.max_pixels);
  if (!whole) pixels = cut(pixels, spec.part);
  resampler_.plan(spec.filter, pixels.size, spec.size, {0, 0, spec.size.width, spec.size.height});
  const Rect needed = resampler_.needed();
  resampler_.run(cut(pixels, needed), false, slot(spec.size));
}

RgbSlot Reencoder::slot(Extent size) {
  return {pixels_.data(), static_cast<size_t>(size.width) * kRgbBytes};
}

}  // namespace stoker

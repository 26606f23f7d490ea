#include "core/images/image_decoder.h"

#include "core/jpeg/header.h"

namespace stoker {

ImageFormat format_of(std::span<const uint8_t> file) {
  if (begins_as_jpeg(file)) return ImageFormat::kJpeg;
  if (begins_as_png(file) && has_png()) return ImageFormat::kPng;
  if (begins_as_webp(file) && has_webp()) return ImageFormat::kWebp;
  return ImageFormat::kOther;
}

int exif_orientation(std::span<const uint8_t> file) {
  switch (format_of(file)) {
    case ImageFormat::kJpeg:
      return probe_jpeg(file).orientation;
    case ImageFormat::kPng:
      return png_orientation(file);
    case ImageFormat::kWebp:
      return webp_orientation(file);
    case ImageFormat::kOther:
      break;
  }
  return 1;
}

Extent ImageDecoder::open(std::span<const uint8_t> file, uint64_t max_pixels, PixelMode mode,
                          Orientation orientation) {
  format_ = format_of(file);
  mode_ = mode;
  converts_ = mode != PixelMode::kRgb;
  orientation_ = orientation;
  size_ = open_as_stored(file, max_pixels);
  return orientation.upright(size_);
}

Extent ImageDecoder::open_as_stored(std::span<const uint8_t> file, uint64_t max_pixels) {
  Extent size;
  switch (format_) {
    case ImageFormat::kPng:
      size = png_.open(file, max_pixels, mode_);
      if (mode_ == PixelMode::kRgba || png_.is_deep()) converts_ = false;
      return size;
    case ImageFormat::kWebp:
      size = webp_.open(file, max_pixels);
      if (mode_ == PixelMode::kRgba && webp_.has_alpha()) converts_ = false;
      return size;
    case ImageFormat::kJpeg:
    case ImageFormat::kOther:
      break;
  }
  return jpeg_.open(file, max_pixels);
}

int32_t ImageDecoder::most_shrink() const {
  return format_ == ImageFormat::kJpeg ? orientation_.most_shrink(size_) : 1;
}

RgbxView ImageDecoder::in_mode(RgbxView view) {
  if (!converts_) return view;
  const auto width = static_cast<size_t>(view.size.width);
  const size_t stride = width * kRgbxBytes;
  uint8_t* const out = converted_.take(stride * static_cast<size_t>(view.size.height) + kRgbxPadding);
  for (int32_t y = 0; y < view.size.height; ++y) {
    to_mode(mode_, view.row(y), width, out + static_cast<size_t>(y) * stride);
  }
  return {out, stride, view.size};
}

void ImageDecoder::start(Rect region, int32_t shrink, EntryPoints* entries) {
  if (!orientation_.turns()) return start_as_stored(region, shrink, entries);
  const Extent image{(size_.width + shrink - 1) / shrink, (size_.height + shrink - 1) / shrink};
  refuse_outside(region, orientation_.upright(image));
  region_ = orientation_.stored(region, image);
  start_as_stored(region_, shrink, entries);
}

void ImageDecoder::start_as_stored(Rect region, int32_t shrink, EntryPoints* entries) {
  switch (format_) {
    case ImageFormat::kPng:
      return png_.start(region);
    case ImageFormat::kWebp:
      region_ = region;
      return;
    case ImageFormat::kJpeg:
    case ImageFormat::kOther:
      break;
  }
  jpeg_.start(region, shrink, entries);
}

RgbxRows ImageDecoder::next() {
  if (orientation_.turns()) return next_turned();
  RgbxRows rows = next_as_stored();
  rows.pixels = in_mode(rows.pixels);
  return rows;
}

RgbxRows ImageDecoder::next_turned() {
  const Extent part{region_.width, region_.height}, size = orientation_.upright(part);
  const size_t stride = static_cast<size_t>(size.width) * kRgbxBytes;
  uint8_t* const out = turned_.take(stride * static_cast<size_t>(size.height) + kRgbxPadding);
  for (int32_t end = 0; end < part.height;) {
    RgbxRows rows = next_as_stored();
    rows.pixels = in_mode(rows.pixels);
    orientation_.turn(rows, part, out);
    end = rows.first + rows.pixels.size.height;
  }
  return {{out, stride, size}, 0};
}

RgbxRows ImageDecoder::next_as_stored() {
  switch (format_) {
    case ImageFormat::kPng:
      return png_.next();
    case ImageFormat::kWebp:
      return {webp_.decode(region_), 0};
    case ImageFormat::kJpeg:
    case ImageFormat::kOther:
      break;
  }
  return jpeg_.next();
}

RgbxView ImageDecoder::decode(Rect region, int32_t shrink) {
  if (orientation_.turns()) {
    start(region, shrink);
    return next_turned().pixels;
  }
  return in_mode(decode_as_stored(region, shrink));
}

RgbxView ImageDecoder::decode_as_stored(Rect region, int32_t shrink) {
  switch (format_) {
    case ImageFormat::kPng:
      return png_.decode(region);
    case ImageFormat::kWebp:
      return webp_.decode(region);
    case ImageFormat::kJpeg:
    case ImageFormat::kOther:
      break;
  }
  return jpeg_.decode(region, shrink);
}

void ImageDecoder::check() {
  switch (format_) {
    case ImageFormat::kPng:
      return png_.check();
    case ImageFormat::kWebp:
      return webp_.check();
    case ImageFormat::kJpeg:
    case ImageFormat::kOther:
      break;
  }
  jpeg_.check();
}

}  // namespace stoker

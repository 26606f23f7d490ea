// Pixels of JPEGs: cut out of a decoded view, and as stock libjpeg decodes the whole image.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/pixel_mode.h"
#include "core/jpeg/header.h"
#include "core/jpeg/libjpeg.h"
#include "fuzz/input.h"
#include "fuzz/invariant.h"

namespace stoker::fuzz {

struct Rgb {
  Extent size;
  std::vector<uint8_t> bytes;  // rows without gaps; of another mode where one is chosen
  friend bool operator==(const Rgb&, const Rgb&) = default;
};

inline Rgb cut(const RgbxView& view, Rect part, PixelMode mode = PixelMode::kRgb) {
  Rgb pixels{{part.width, part.height}, {}};
  for (int32_t y = part.y; y < part.y + part.height; ++y) {
    for (int32_t x = part.x; x < part.x + part.width; ++x) {
      const uint8_t* pixel = view.row(y) + static_cast<size_t>(x) * kRgbxBytes;
      pixels.bytes.insert(pixels.bytes.end(), pixel, pixel + pixel_bytes(mode));
    }
  }
  return pixels;
}

// A part of an image, by four choices.
inline Rect some_part(Input& input, Extent size) {
  const int32_t x = input.below(size.width), y = input.below(size.height);
  return {x, y, 1 + input.below(size.width - x), 1 + input.below(size.height - y)};
}

inline Rgb cut(const Rgb& image, Rect part, PixelMode mode = PixelMode::kRgb) {
  Rgb pixels{{part.width, part.height}, {}};
  const auto columns = static_cast<size_t>(image.size.width);
  const size_t pixel = pixel_bytes(mode);
  for (int32_t y = part.y; y < part.y + part.height; ++y) {
    const size_t first = (static_cast<size_t>(y) * columns + static_cast<size_t>(part.x)) * pixel;
    const auto row = image.bytes.begin() + static_cast<std::ptrdiff_t>(first);
    pixels.bytes.insert(pixels.bytes.end(), row, row + part.width * static_cast<std::ptrdiff_t>(pixel));
  }
  return pixels;
}

// The whole image by libjpeg's accurate decode, row by row. Nothing where it reports an error or lost pixels
// up to the last row, scans are missing, check_jpeg finds something, the image has more than `most` pixels,
// or is of inks and not RGB.
inline std::optional<Rgb> libjpeg_pixels(std::span<const uint8_t> file, uint64_t most) {
  if (!succeeds([&] { check_jpeg(file); })) return std::nullopt;
  static Rgb image;  // outlives the jump
  jpeg_decompress_struct c;
  JpegErrors errors;
  ScanLimit limit;
  c.err = errors.install();
  if (setjmp(errors.escape) != 0) {
    jpeg_destroy_decompress(&c);
    return std::nullopt;
  }
  jpeg_create_decompress(&c);
  limit.install(c);
  jpeg_mem_src(&c, file.data(), static_cast<unsigned long>(file.size()));
  jpeg_read_header(&c, TRUE);
  const bool inks = c.jpeg_color_space == JCS_CMYK || c.jpeg_color_space == JCS_YCCK;
  if (inks || uint64_t{c.image_width} * c.image_height > most) {
    jpeg_destroy_decompress(&c);
    return std::nullopt;
  }
  c.out_color_space = JCS_RGB;
  c.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&c);
  refuse_missing_scans(c);
  image.size = {static_cast<int32_t>(c.output_width), static_cast<int32_t>(c.output_height)};
  image.bytes.resize(size_t{c.output_width} * c.output_height * kRgbBytes);
  while (c.output_scanline < c.output_height) {
    JSAMPROW to = image.bytes.data() + size_t{c.output_scanline} * c.output_width * kRgbBytes;
    jpeg_read_scanlines(&c, &to, 1);
  }
  jpeg_destroy_decompress(&c);
  return image;
}

}  // namespace stoker::fuzz

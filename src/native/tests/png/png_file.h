// PNGs for tests, written and read by libpng's plainest calls.
#pragma once

#include <png.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "core/base/pixels.h"

namespace stoker::tests {

struct PngSpec {
  Extent size = {};
  int color = PNG_COLOR_TYPE_RGB;
  int bits = 8;
  bool interlaced = false;
  bool transparent = false;  // with a tRNS chunk
  int entries = 256;         // of a palette, at most what the bits can name
  int seed = 0;
};

// Samples at random, in runs, so that every filter is used.
inline std::vector<uint8_t> png(const PngSpec& spec) {
  std::vector<uint8_t> file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp to, png_bytep bytes, size_t count) {
        auto& out = *static_cast<std::vector<uint8_t>*>(png_get_io_ptr(to));
        out.insert(out.end(), bytes, bytes + count);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(spec.size.width),
               static_cast<png_uint_32>(spec.size.height), spec.bits, spec.color,
               spec.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_ALL_FILTERS);
  std::mt19937 random(static_cast<unsigned>(spec.seed));
  const int named = 1 << (spec.bits < 8 ? spec.bits : 8);
  const int entries = spec.entries < named ? spec.entries : named;
  if (spec.color == PNG_COLOR_TYPE_PALETTE) {
    std::vector<png_color> palette(static_cast<size_t>(entries));
    for (png_color& color : palette) {
      color = {static_cast<png_byte>(random()), static_cast<png_byte>(random()),
               static_cast<png_byte>(random())};
    }
    png_set_PLTE(png, info, palette.data(), entries);
    png_set_check_for_invalid_index(png, 0);
  }
  if (spec.transparent) {
    const png_byte alphas[] = {0, 100, 200};
    png_color_16 color = {};
    png_set_tRNS(png, info, alphas, entries < 3 ? entries : 3, &color);
  }
  png_write_info(png, info);
  const size_t row_bytes = png_get_rowbytes(png, info);
  std::vector<uint8_t> samples(row_bytes * static_cast<size_t>(spec.size.height));
  uint8_t value = 0;
  for (uint8_t& sample : samples) {
    if (random() % 4 == 0) value = static_cast<uint8_t>(random());
    sample = value;
  }
  std::vector<uint8_t*> rows;
  for (int32_t y = 0; y < spec.size.height; ++y) rows.push_back(&samples[static_cast<size_t>(y) * row_bytes]);
  png_write_image(png, rows.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

// The whole image as RGB, or as RGBA, converted by libpng; of 16-bit grey, the samples (two bytes, the high
// one first).
inline std::vector<uint8_t> plain_png_decode(std::span<const uint8_t> file, bool with_alpha = false) {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_read_fn(png, &file, [](png_structp from, png_bytep bytes, size_t count) {
    auto& left = *static_cast<std::span<const uint8_t>*>(png_get_io_ptr(from));
    if (count > left.size()) std::abort();
    std::memcpy(bytes, left.data(), count);
    left = left.subspan(count);
  });
  png_read_info(png, info);
  const bool wide_grey =
      png_get_color_type(png, info) == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png, info) == 16;
  if (!wide_grey) {
    png_set_expand(png);
    png_set_strip_16(png);
    if (with_alpha) {
      png_set_add_alpha(png, 255, PNG_FILLER_AFTER);
    } else {
      png_set_strip_alpha(png);
    }
    png_set_gray_to_rgb(png);
  }
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  const size_t row_bytes = png_get_rowbytes(png, info), height = png_get_image_height(png, info);
  std::vector<uint8_t> pixels(row_bytes * height);
  std::vector<uint8_t*> rows;
  for (size_t y = 0; y < height; ++y) rows.push_back(&pixels[y * row_bytes]);
  png_read_image(png, rows.data());
  png_read_end(png, info);
  png_destroy_read_struct(&png, &info, nullptr);
  return pixels;
}

}  // namespace stoker::tests

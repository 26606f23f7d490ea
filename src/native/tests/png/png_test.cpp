#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/png/decoder.h"
#include "tests/png/png_file.h"
#include "tests/regions.h"

namespace stoker {
namespace {

using tests::any_region;
using tests::cut;
using tests::PngSpec;
using tests::to_rgb;

std::vector<uint8_t> expected(const PngSpec& spec, std::span<const uint8_t> file) {
  const auto plain = tests::plain_png_decode(file);
  if (spec.color != PNG_COLOR_TYPE_GRAY || spec.bits != 16) return plain;
  std::vector<uint8_t> pixels;
  for (size_t i = 0; i < plain.size(); i += 2) {
    const auto grey = static_cast<uint8_t>(std::lround((plain[i] * 256 + plain[i + 1]) / 257.0));
    pixels.insert(pixels.end(), 3, grey);
  }
  return pixels;
}

std::vector<PngSpec> every_kind() {
  std::vector<PngSpec> specs;
  const auto add = [&](int color, int bits, bool may_be_transparent) {
    for (int variant = 0; variant < 4; ++variant) {
      const bool transparent = (variant & 2) != 0;
      if (transparent && !may_be_transparent) continue;
      specs.push_back({.size = {23, 19},
                       .color = color,
                       .bits = bits,
                       .interlaced = (variant & 1) != 0,
                       .transparent = transparent,
                       .seed = static_cast<int>(specs.size())});
    }
  };
  for (const int bits : {1, 2, 4, 8, 16}) add(PNG_COLOR_TYPE_GRAY, bits, true);
  for (const int bits : {1, 2, 4, 8}) add(PNG_COLOR_TYPE_PALETTE, bits, true);
  for (const int bits : {8, 16}) {
    add(PNG_COLOR_TYPE_RGB, bits, true);
    add(PNG_COLOR_TYPE_GRAY_ALPHA, bits, false);
    add(PNG_COLOR_TYPE_RGB_ALPHA, bits, false);
  }
  return specs;
}

std::vector<uint8_t> decode(std::span<const uint8_t> file) {
  PngDecoder decoder;
  const Extent size = decoder.open(file);
  return to_rgb(decoder.decode({0, 0, size.width, size.height}));
}

// Whether a file is refused as damaged, by check() as by decode().
bool is_refused(std::span<const uint8_t> file) {
  PngDecoder decoder;
  bool refused = false;
  try {
    const Extent size = decoder.open(file);
    decoder.decode({0, 0, size.width, size.height});
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBadImage);
    refused = true;
  }
  bool refused_by_check = false;
  try {
    decoder.open(file);
    decoder.check();
  } catch (const Error&) {
    refused_by_check = true;
  }
  CHECK(refused == refused_by_check);
  return refused;
}

TEST_CASE("regions of every kind of PNG are those of libpng's whole decode") {
  PngDecoder decoder;
  std::mt19937 random(1);
  for (PngSpec spec : every_kind()) {
    for (const Extent size : {Extent{23, 19}, Extent{1, 1}, Extent{3, 2}, Extent{5, 40}}) {
      spec.size = size;
      CAPTURE(spec.color);
      CAPTURE(spec.bits);
      CAPTURE(spec.interlaced);
      CAPTURE(size.width);
      const auto file = tests::png(spec);
      const auto whole = expected(spec, file);
      for (int i = 0; i < 8; ++i) {
        Rect region = any_region(size, random);
        if (i == 0) region = {0, 0, size.width, size.height};
        REQUIRE(decoder.open(file) == size);
        CHECK(to_rgb(decoder.decode(region)) == cut(whole, size, region));
      }
    }
  }
}

TEST_CASE("alpha of every kind of PNG is that of libpng's whole decode") {
  PngDecoder decoder;
  size_t clear = 0;
  for (const PngSpec& spec : every_kind()) {
    // Of a colour that is transparent, Pillow compares other bits of 16 than libpng.
    if (spec.bits == 16 && spec.transparent) continue;
    CAPTURE(spec.color);
    CAPTURE(spec.bits);
    CAPTURE(spec.transparent);
    const auto file = tests::png(spec);
    const auto plain = tests::plain_png_decode(file, true);
    for (const Rect region : {Rect{0, 0, 23, 19}, Rect{5, 3, 11, 16}}) {
      decoder.open(file, 1000, PixelMode::kRgba);
      const RgbxView view = decoder.decode(region);
      for (int32_t y = 0; y < region.height; ++y) {
        for (int32_t x = 0; x < region.width; ++x) {
          const auto at = static_cast<size_t>((region.y + y) * 23 + region.x + x);
          const uint8_t* pixel = view.row(y) + 4 * x;
          if (spec.color == PNG_COLOR_TYPE_GRAY && spec.bits == 16) {
            REQUIRE(pixel[3] == 255);
          } else {
            for (size_t c = 0; c < 4; ++c) REQUIRE(pixel[c] == plain[4 * at + c]);
          }
          clear += pixel[3] == 0 ? 1 : 0;
        }
      }
    }
  }
  CHECK(clear > 500);
}

TEST_CASE("a transparent colour of 16-bit grey is compared as it is, and one of RGB with its low bytes") {
  PngSpec spec{.size = {23, 19}, .color = PNG_COLOR_TYPE_GRAY, .bits = 16, .transparent = true};
  PngDecoder decoder;
  for (const bool grey : {true, false}) {
    if (!grey) spec.color = PNG_COLOR_TYPE_RGB;
    const auto file = tests::png(spec);
    decoder.open(file, 1000, PixelMode::kRgba);
    const RgbxView view = decoder.decode({0, 0, 23, 19});
    const auto plain = tests::plain_png_decode(file);
    for (size_t i = 0; i < 23 * 19; ++i) {
      const uint8_t* pixel = view.data + 4 * i;
      const bool clear = grey ? plain[2 * i] + plain[2 * i + 1] == 0
                              : plain[3 * i] + plain[3 * i + 1] + plain[3 * i + 2] == 0;
      REQUIRE(pixel[3] == (clear ? 0 : 255));
    }
  }
}

TEST_CASE("16-bit grey comes as it is where it is asked for, and nothing else does") {
  PngDecoder decoder;
  for (const PngSpec& spec : every_kind()) {
    CAPTURE(spec.color);
    CAPTURE(spec.bits);
    const auto file = tests::png(spec);
    if (spec.color == PNG_COLOR_TYPE_PALETTE) {
      CHECK_THROWS_AS(decoder.open(file, 1000, PixelMode::kI16), Error);
      continue;
    }
    decoder.open(file, 1000, PixelMode::kI16);
    REQUIRE(decoder.is_deep() == (spec.color == PNG_COLOR_TYPE_GRAY && spec.bits == 16));
    const RgbxView view = decoder.decode({2, 1, 20, 17});
    if (!decoder.is_deep()) {
      REQUIRE(to_rgb(view) == cut(expected(spec, file), spec.size, {2, 1, 20, 17}));
      continue;
    }
    const auto plain = tests::plain_png_decode(file);
    for (size_t y = 0; y < 17; ++y) {
      for (size_t x = 0; x < 20; ++x) {
        const size_t at = 2 * ((y + 1) * 23 + x + 2);
        uint16_t value;
        std::memcpy(&value, view.row(static_cast<int32_t>(y)) + 4 * x, 2);
        REQUIRE(value == plain[at] * 256 + plain[at + 1]);
      }
    }
  }
}

TEST_CASE("entries that a palette lacks are black") {
  const PngSpec spec{.size = {16, 16}, .color = PNG_COLOR_TYPE_PALETTE, .bits = 4, .entries = 3};
  const auto file = tests::png(spec);
  const auto pixels = decode(file);
  size_t black = 0;
  for (size_t i = 0; i < pixels.size(); i += 3) black += pixels[i] + pixels[i + 1] + pixels[i + 2] == 0;
  CHECK(black > 100);
}

TEST_CASE("a PNG that ends anywhere in its data is refused, and what follows them is not read") {
  for (const bool interlaced : {false, true}) {
    const auto file = tests::png({.size = {9, 7}, .interlaced = interlaced});
    const size_t end_of_data = file.size() - 12;  // IEND
    for (size_t bytes = 0; bytes < file.size(); ++bytes) {
      CAPTURE(bytes);
      CHECK(is_refused(std::span(file).first(bytes)) == (bytes < end_of_data));
    }
  }
}

TEST_CASE("damage is refused wherever it changes pixels") {
  const auto file = tests::png({.size = {9, 7}});
  const auto whole = decode(file);
  const size_t end_of_sum = file.size() - 16;  // the checksum of the chunk, and IEND
  for (size_t at = 0; at < file.size(); ++at) {
    CAPTURE(at);
    auto damaged = file;
    damaged[at] ^= 0x10;
    if (at >= end_of_sum) {
      CHECK(decode(damaged) == whole);
    } else {
      CHECK(is_refused(damaged));
    }
  }
}

TEST_CASE("a crop does not see damage below itself") {
  auto file = tests::png({.size = {64, 400}});
  file[file.size() - 40] ^= 0x10;
  CHECK(is_refused(file));
  PngDecoder decoder;
  decoder.open(file);
  CHECK(decoder.decode({3, 5, 20, 30}).size == Extent{20, 30});
}

TEST_CASE("a claim of more pixels than the bytes can hold is refused before memory is taken") {
  auto file = tests::png({.size = {9, 7}});
  const auto sized = [&](uint32_t width, uint32_t height) {
    const uint8_t sides[] = {static_cast<uint8_t>(width >> 24),  static_cast<uint8_t>(width >> 16),
                             static_cast<uint8_t>(width >> 8),   static_cast<uint8_t>(width),
                             static_cast<uint8_t>(height >> 24), static_cast<uint8_t>(height >> 16),
                             static_cast<uint8_t>(height >> 8),  static_cast<uint8_t>(height)};
    std::copy(std::begin(sides), std::end(sides), file.begin() + 16);
    png_uint_32 sum = 0xffffffffu;  // of the chunk IHDR
    for (size_t i = 12; i < 29; ++i) {
      sum ^= file[i];
      for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0xedb88320u : 0);
    }
    sum = ~sum;
    for (size_t i = 0; i < 4; ++i) file[29 + i] = static_cast<uint8_t>(sum >> (24 - 8 * i));
  };
  PngDecoder decoder;
  sized(9, 7);
  CHECK(decoder.open(file) == Extent{9, 7});
  for (const auto& [width, height, code] :
       {std::tuple{11000u, 11000u, ErrorCode::kBadImage},
        std::tuple{0x7fffffffu, 1u, ErrorCode::kImageTooLarge},
        std::tuple{0x100001u, 1u, ErrorCode::kImageTooLarge},
        std::tuple{1u, 0x100001u, ErrorCode::kImageTooLarge},
        std::tuple{0x7fffffffu, 0x7fffffffu, ErrorCode::kImageTooLarge}}) {
    sized(width, height);
    try {
      decoder.open(file);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == code);
    }
  }
}

TEST_CASE("a decoder that has refused one image decodes the next") {
  const auto file = tests::png({.size = {9, 7}});
  const auto whole = decode(file);
  PngDecoder decoder;
  CHECK_THROWS_AS(decoder.decode({0, 0, 1, 1}), Error);
  CHECK_THROWS_AS(decoder.open({}), Error);
  CHECK_THROWS_AS(decoder.open(std::span(file).first(40)), Error);
  CHECK_THROWS_AS(decoder.decode({0, 0, 1, 1}), Error);
  decoder.open(file);
  CHECK_THROWS_AS(decoder.decode({0, 0, 10, 7}), Error);
  decoder.open(file);
  CHECK(to_rgb(decoder.decode({0, 0, 9, 7})) == whole);
  CHECK_THROWS_AS(decoder.decode({0, 0, 9, 7}), Error);
}

}  // namespace
}  // namespace stoker

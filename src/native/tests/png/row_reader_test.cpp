#include "core/png/row_reader.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "core/base/errors.h"
#include "core/png/decoder.h"
#include "core/png/libpng_reader.h"
#include "tests/png/png_file.h"

namespace stoker {
namespace {

using Bytes = std::vector<uint8_t>;
using tests::PngSpec;

constexpr PngSpec kKinds[] = {
    {.color = PNG_COLOR_TYPE_GRAY, .bits = 1},        {.color = PNG_COLOR_TYPE_GRAY, .bits = 2},
    {.color = PNG_COLOR_TYPE_PALETTE, .bits = 4},     {.color = PNG_COLOR_TYPE_PALETTE, .bits = 8},
    {.color = PNG_COLOR_TYPE_GRAY, .bits = 16},       {.color = PNG_COLOR_TYPE_GRAY_ALPHA, .bits = 8},
    {.color = PNG_COLOR_TYPE_GRAY_ALPHA, .bits = 16}, {.color = PNG_COLOR_TYPE_RGB, .bits = 8},
    {.color = PNG_COLOR_TYPE_RGB, .bits = 16},        {.color = PNG_COLOR_TYPE_RGB_ALPHA, .bits = 8},
    {.color = PNG_COLOR_TYPE_RGB_ALPHA, .bits = 16},
};

// The leftmost whole bytes of `columns` pixels of some rows, end to end, by libpng alone.
Bytes by_libpng(std::span<const uint8_t> file, int32_t first, int32_t end, int32_t columns) {
  LibpngReader libpng;
  libpng.open(file, kDefaultMaxPixels, PixelMode::kRgb);
  libpng.start(first, end - first);
  const size_t bytes = static_cast<size_t>(columns) * libpng.pixels().layout.bits() / 8;
  Bytes rows;
  for (int32_t y = first; y < end; ++y) {
    const uint8_t* const row = libpng.next();
    rows.insert(rows.end(), row, row + bytes);
  }
  return rows;
}

// The same by the reader; nothing where it has a doubt.
std::optional<Bytes> by_reader(PngRowReader& reader, std::span<const uint8_t> file, int32_t first,
                               int32_t end, int32_t columns) {
  LibpngReader libpng;
  libpng.open(file, kDefaultMaxPixels, PixelMode::kRgb);
  const unsigned bits = libpng.pixels().layout.bits();
  reader.open(libpng.data_chunks(), libpng.size(), bits);
  reader.start(first, end, columns);
  Bytes pixels;
  for (int32_t y = first; y < end;) {
    const std::optional<PngRows> rows = reader.next();
    if (!rows) return std::nullopt;
    y += rows->count;
    REQUIRE(y <= end);
    CHECK((y == end || rows->count == reader.rows_together()));
    for (int32_t i = 0; i < rows->count; ++i) {
      const uint8_t* const row = rows->data + static_cast<size_t>(i) * rows->stride;
      pixels.insert(pixels.end(), row, row + static_cast<size_t>(columns) * bits / 8);
    }
  }
  return pixels;
}

bool is_passed(PngRowReader& reader, std::span<const uint8_t> file) {
  LibpngReader libpng;
  libpng.open(file, kDefaultMaxPixels, PixelMode::kRgb);
  reader.open(libpng.data_chunks(), libpng.size(), libpng.pixels().layout.bits());
  return reader.check();
}

void put_chunk(Bytes& file, const char* type, std::span<const uint8_t> data) {
  for (int shift = 24; shift >= 0; shift -= 8) file.push_back(static_cast<uint8_t>(data.size() >> shift));
  file.insert(file.end(), type, type + 4);
  file.insert(file.end(), data.begin(), data.end());
  file.insert(file.end(), 4, 0);  // a checksum that nobody asks for
}

// What comes before the data chunks of a file, and what is in them.
struct Parts {
  Bytes head, data;
};

Parts parts_of(std::span<const uint8_t> file) {
  LibpngReader libpng;
  libpng.open(file, kDefaultMaxPixels, PixelMode::kRgb);
  auto left = libpng.data_chunks();
  Parts parts{{file.begin(), file.end() - static_cast<std::ptrdiff_t>(left.size())}, {}};
  while (std::equal(left.begin() + 4, left.begin() + 8, "IDAT")) {
    const size_t length = size_t{left[1]} << 16 | size_t{left[2]} << 8 | left[3];
    parts.data.insert(parts.data.end(), left.begin() + 8, left.begin() + 8 + static_cast<long>(length));
    left = left.subspan(length + 12);
  }
  return parts;
}

TEST_CASE("any part of any PNG that is not interlaced has the rows of libpng, with all kernels") {
  std::mt19937 random(1);
  for (const FilterKernels* kernels : filter_kernels()) {
    PngRowReader reader(*kernels);
    for (PngSpec spec : kKinds) {
      for (const Extent size :
           {Extent{1, 1}, Extent{40, 1}, Extent{1, 40}, Extent{37, 29}, Extent{700, 130}}) {
        spec.size = size;
        CAPTURE(kernels->name);
        CAPTURE(spec.color);
        CAPTURE(spec.bits);
        CAPTURE(size.height);
        const Bytes file = tests::png(spec);
        CHECK(is_passed(reader, file));
        for (int i = 0; i < 4; ++i) {
          const auto below = [&](int32_t most) {
            return static_cast<int32_t>(random() % static_cast<unsigned>(most));
          };
          const int32_t first = i == 0 ? 0 : below(size.height);
          const int32_t end = i == 0 ? size.height : first + 1 + below(size.height - first);
          const int32_t columns = i == 0 ? size.width : 1 + below(size.width);
          CHECK(by_reader(reader, file, first, end, columns) == by_libpng(file, first, end, columns));
        }
      }
    }
  }
}

TEST_CASE("it does not matter how the data lie in chunks") {
  const Bytes file = tests::png({.size = {50, 40}});
  const Parts parts = parts_of(file);
  const std::span<const uint8_t> data(parts.data);
  for (const size_t most : {size_t{1}, size_t{7}, data.size()}) {
    CAPTURE(most);
    Bytes split = parts.head;
    put_chunk(split, "IDAT", {});
    for (size_t at = 0; at < data.size(); at += most)
      put_chunk(split, "IDAT", data.subspan(at, std::min(most, data.size() - at)));
    PngRowReader reader;
    CHECK(by_reader(reader, split, 0, 40, 50) == by_libpng(file, 0, 40, 50));
    CHECK(is_passed(reader, split));
  }
}

TEST_CASE("oddities about the data are doubts") {
  const Bytes file = tests::png({.size = {50, 40}});
  const Parts parts = parts_of(file);
  const std::span<const uint8_t> data(parts.data), start = data.first(data.size() - 9);
  const auto with = [&](std::initializer_list<std::pair<const char*, std::span<const uint8_t>>> chunks) {
    Bytes png_file = parts.head;
    for (const auto& [type, bytes] : chunks) put_chunk(png_file, type, bytes);
    put_chunk(png_file, "IEND", {});
    return png_file;
  };
  const uint8_t more[] = {0, 0, 0};
  Bytes extra = parts.data, wrong = parts.data;
  extra.push_back(0);
  wrong.back() ^= 1;
  PngRowReader reader;
  CHECK(is_passed(reader, with({{"IDAT", data}})));
  CHECK(is_passed(reader, with({{"IDAT", data}, {"IDAT", more}})));  // what follows is not read
  CHECK(!is_passed(reader, with({{"IDAT", extra}})));
  CHECK(!is_passed(reader, with({{"IDAT", wrong}})));
  CHECK(!is_passed(reader, with({{"IDAT", start}})));
  CHECK(is_passed(reader, with({{"IDAT", start}, {"IDAT", {}}, {"IDAT", data.last(9)}})));
  CHECK(!is_passed(reader, with({{"IDAT", start}, {"tEXt", {}}, {"IDAT", data.last(9)}})));
  for (size_t bytes = parts.head.size() + 8; bytes < file.size() - 12; ++bytes) {
    CAPTURE(bytes);
    CHECK(!is_passed(reader, std::span(file).first(bytes)));
  }
}

// The pixels of a region, or nothing where the file is refused, also in bands.
std::optional<Bytes> by_decoder(PngDecoder& decoder, std::span<const uint8_t> file, Rect region) {
  Bytes whole, bands;
  const auto row_bytes = static_cast<size_t>(region.width) * kRgbBytes;
  const auto put = [&](const RgbxView& view, Bytes& to, int32_t first) {
    to.resize(row_bytes * static_cast<size_t>(first + view.size.height));
    rgbx_to_rgb(view, {to.data() + row_bytes * static_cast<size_t>(first), row_bytes});
  };
  try {
    decoder.open(file);
    put(decoder.decode(region), whole, 0);
  } catch (const Error&) {
  }
  try {
    decoder.open(file);
    decoder.start(region);
    for (int32_t end = 0; end < region.height;) {
      const RgbxRows rows = decoder.next();
      CHECK((rows.first == end || rows.first == 0));
      end = rows.first + rows.pixels.size.height;
      CHECK((end == region.height || rows.pixels.size.height % 4 == 0));
      put(rows.pixels, bands, rows.first);
    }
    CHECK_THROWS_AS(decoder.next(), Error);
  } catch (const Error&) {
    bands.clear();
  }
  CHECK(bands == whole);
  if (whole.empty()) return std::nullopt;
  return whole;
}

std::optional<Bytes> by_libpng_alone(std::span<const uint8_t> file, Rect region) {
  LibpngReader libpng;
  const auto width = static_cast<size_t>(region.width);
  Bytes rgbx(width * kRgbxBytes), pixels(width * kRgbBytes * static_cast<size_t>(region.height));
  try {
    libpng.open(file, kDefaultMaxPixels, PixelMode::kRgb);
    libpng.start(region.y, region.height);
    for (int32_t y = 0; y < region.height; ++y) {
      libpng.pixels().convert(libpng.next(), static_cast<size_t>(region.x), width, rgbx.data());
      rgbx_to_rgb({rgbx.data(), rgbx.size(), {region.width, 1}},
                  {pixels.data() + static_cast<size_t>(y) * width * kRgbBytes, 0});
    }
  } catch (const Error&) {
    return std::nullopt;
  }
  return pixels;
}

TEST_CASE("a damaged PNG has the verdict and the pixels of libpng alone") {
  PngDecoder decoder;
  for (const PngSpec& kind : {PngSpec{.size = {21, 17}}, PngSpec{.size = {21, 17}, .interlaced = true},
                              PngSpec{.size = {30, 17}, .color = PNG_COLOR_TYPE_PALETTE, .bits = 4}}) {
    const Bytes file = tests::png(kind);
    const Rect regions[] = {{0, 0, kind.size.width, kind.size.height}, {4, 2, 9, 6}};
    for (const Rect region : regions) {
      for (size_t at = 0; at < file.size(); ++at) {
        CAPTURE(at);
        const auto cut = std::span(file).first(at);
        CHECK(by_decoder(decoder, cut, region) == by_libpng_alone(cut, region));
        Bytes damaged = file;
        damaged[at] ^= static_cast<uint8_t>(1u << at % 8);
        CHECK(by_decoder(decoder, damaged, region) == by_libpng_alone(damaged, region));
      }
    }
  }
}

TEST_CASE("rows that were given come again where a doubt arises behind them") {
  const PngSpec spec{.size = {300, 500}};
  const Bytes file = tests::png(spec);
  Parts parts = parts_of(file);
  parts.data.push_back(0);
  Bytes odd = parts.head;
  put_chunk(odd, "IDAT", parts.data);
  PngDecoder decoder;
  decoder.open(odd);
  decoder.start({0, 0, 300, 500});
  int again = 0;
  for (int32_t end = 0; end < 500;) {
    const RgbxRows rows = decoder.next();
    again += rows.first < end;
    end = rows.first + rows.pixels.size.height;
  }
  CHECK(again == 1);
  CHECK(by_decoder(decoder, odd, {7, 9, 200, 491}) == by_decoder(decoder, file, {7, 9, 200, 491}));
}

}  // namespace
}  // namespace stoker

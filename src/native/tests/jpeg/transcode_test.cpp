#include "core/jpeg/transcode.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include "core/base/errors.h"
#include "core/jpeg/encode.h"
#include "core/jpeg/header.h"
#include "core/jpeg/libjpeg.h"
#include "core/jpeg/restart_interval.h"
#include "tests/libjpeg_reference.h"
#include "tests/photo.h"

namespace stoker {
namespace {

using Bytes = std::vector<uint8_t>;

// All that decides the pixels of a file: sizes, colours, tables, and the coefficients of every block. Padding
// blocks, which a decoder throws away, are not among them.
struct Contents {
  std::vector<int> header;
  std::vector<JCOEF> coefficients;
  bool operator==(const Contents&) const = default;
};

Contents contents_of(const Bytes& bytes) {
  jpeg_decompress_struct c{};
  JpegErrors errors{};
  Contents contents;
  c.err = errors.install();
  if (setjmp(errors.escape) != 0) FAIL(errors.message);
  jpeg_create_decompress(&c);
  jpeg_mem_src(&c, bytes.data(), static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&c, TRUE);
  jvirt_barray_ptr* arrays = jpeg_read_coefficients(&c);
  contents.header = {static_cast<int>(c.image_width), static_cast<int>(c.image_height),
                     static_cast<int>(c.jpeg_color_space), c.num_components};
  for (int i = 0; i < c.num_components; ++i) {
    const jpeg_component_info& part = c.comp_info[i];
    contents.header.insert(contents.header.end(),
                           {part.component_id, part.h_samp_factor, part.v_samp_factor});
    contents.header.insert(contents.header.end(), part.quant_table->quantval,
                           part.quant_table->quantval + 64);
    for (JDIMENSION y = 0; y < part.height_in_blocks; ++y) {
      JBLOCKARRAY rows =
          c.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&c), arrays[i], y, 1, FALSE);
      for (JDIMENSION x = 0; x < part.width_in_blocks; ++x) {
        contents.coefficients.insert(contents.coefficients.end(), rows[0][x], rows[0][x] + 64);
      }
    }
  }
  jpeg_destroy_decompress(&c);
  return contents;
}

// How a source differs from what the project itself writes.
struct Source {
  Extent size{};
  int horizontal = 1, vertical = 1;
  bool grey = false, progressive = false, scan_by_scan = false, optimised = false;
  int restart_interval = 0;
  int stops_before = 0;  // leave out that many of the last scans
};

Bytes written(const Source& source) {
  const int channels = source.grey ? 1 : 3;
  return tests::reference_jpeg(tests::waves(source.size, channels, 5), source.size, channels,
                               {.quality = 75,
                                .across = source.horizontal,
                                .down = source.vertical,
                                .restart_interval = source.restart_interval,
                                .optimised = source.optimised,
                                .progressive = source.progressive,
                                .scan_by_scan = source.scan_by_scan,
                                .stops_before = source.stops_before});
}

size_t markers(const Bytes& bytes) {
  size_t count = 0;
  for (size_t i = 0; i + 1 < bytes.size(); ++i) count += bytes[i] == 0xFF && (bytes[i + 1] & 0xF8) == 0xD0;
  return count;
}

// The offset of the first such marker in a file that has it.
Bytes::iterator find(Bytes& bytes, uint8_t marker) {
  const uint8_t wanted[2] = {0xFF, marker};
  return std::search(bytes.begin(), bytes.end(), wanted, wanted + 2);
}

ErrorCode transcode_error(const Bytes& bytes, uint64_t max_pixels = kDefaultMaxPixels) {
  try {
    transcode_jpeg(bytes, max_pixels);
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("no error");
  return ErrorCode::kClosed;
}

TEST_CASE("a transcode has the coefficients of its source, whatever the source is") {
  for (const Extent size : {Extent{1, 1}, Extent{7, 300}, Extent{97, 61}, Extent{333, 40}}) {
    for (const auto& [h, v] : {std::pair{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {4, 2}}) {
      for (Source source : {Source{}, Source{.progressive = true}, Source{.scan_by_scan = true},
                            Source{.optimised = true}, Source{.restart_interval = 3}}) {
        source.size = size, source.horizontal = h, source.vertical = v;
        const Bytes bytes = written(source);
        const auto out = transcode_jpeg(bytes);
        REQUIRE(out.has_value());
        CHECK(contents_of(*out) == contents_of(bytes));
        const JpegInfo info = check_jpeg(*out);
        CHECK(!info.progressive);
        const uint32_t row = mcus_per_row(static_cast<uint32_t>(size.width), h);
        CHECK(info.restart_interval == restart_interval(row, kLosslessTiles));
        const auto rows = static_cast<uint32_t>((size.height + 8 * v - 1) / (8 * v));
        CHECK(markers(*out) == (row * rows - 1) / info.restart_interval);
      }
    }
  }
}

TEST_CASE("one component counts single blocks, whatever factors its header has") {
  for (const int factor : {1, 2}) {
    const Bytes bytes = written({.size = {200, 90}, .horizontal = factor, .vertical = factor, .grey = true});
    const auto out = transcode_jpeg(bytes);
    REQUIRE(out.has_value());
    CHECK(contents_of(*out) == contents_of(bytes));
    CHECK(check_jpeg(*out).restart_interval == 5);
    CHECK(markers(*out) == 25 * 12 / 5 - 1);
  }
}

TEST_CASE("a transcode of a transcode changes nothing") {
  const auto once = transcode_jpeg(written({.size = {120, 80}, .progressive = true}));
  CHECK(transcode_jpeg(*once) == once);
}

TEST_CASE("a file that lacks scans is refused, and one that does not fit into one scan has no transcode") {
  CHECK_THROWS_WITH_AS(transcode_jpeg(written({.size = {90, 90}, .progressive = true, .stops_before = 2})),
                       doctest::Contains("component 1 of 3 lacks the last bits of coefficients 1 to 63"),
                       Error);
  const Bytes wide = written({.size = {90, 90}, .horizontal = 4, .vertical = 4, .scan_by_scan = true});
  CHECK(!transcode_jpeg(wide).has_value());  // 18 blocks an MCU; one scan holds 10
}

TEST_CASE("encoded files have the markers of their specification") {
  JpegEncodeSpec spec{.restart_tiles = kEncodedTiles};  // 30 MCUs: 15 tiles
  const Bytes with = tests::jpeg({480, 100}, spec), without = tests::jpeg({480, 100});
  CHECK(check_jpeg(with).restart_interval == 2);
  CHECK(markers(with) == 30 * 7 / 2 - 1);
  CHECK(contents_of(with) == contents_of(without));
  spec = {.restart_interval = 65536};
  CHECK_THROWS_AS(tests::jpeg({48, 48}, spec), Error);
}

TEST_CASE("too many pixels are refused before memory is taken") {
  Bytes bytes = written({.size = {40, 30}});
  CHECK(transcode_error(bytes, 40 * 30 - 1) == ErrorCode::kImageTooLarge);
  CHECK(transcode_jpeg(bytes, 40 * 30).has_value());
  const auto frame = find(bytes, 0xC0);
  for (int at : {5, 7}) frame[at] = 0xEA;
  CHECK(transcode_error(bytes) == ErrorCode::kImageTooLarge);
}

TEST_CASE("a file cut anywhere is an error, and damage is never passed on") {
  const Bytes whole = written({.size = {40, 30}, .restart_interval = 2});
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    CHECK(transcode_error({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut)}) ==
          ErrorCode::kBadImage);
  }
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    Bytes bytes = written({.size = {40, 30}, .progressive = round % 2 == 0});
    for (int i = 0; i < 2; ++i) bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    try {
      if (const auto out = transcode_jpeg(bytes, 1 << 20)) check_jpeg(*out);
    } catch (const Error&) {
    }
  }
}

TEST_CASE("a file of endless scans is an error") {
  Bytes bytes = written({.size = {16, 16}, .progressive = true});
  const auto first = find(bytes, 0xDA);
  const Bytes scans(first, bytes.end() - 2);
  bytes.erase(bytes.end() - 2, bytes.end());
  for (int i = 0; i < 100; ++i) bytes.insert(bytes.end(), scans.begin(), scans.end());
  bytes.insert(bytes.end(), {0xFF, 0xD9});
  CHECK(transcode_error(bytes) == ErrorCode::kBadImage);
}

}  // namespace
}  // namespace stoker

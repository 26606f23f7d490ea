#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/base/pixels.h"
#include "core/jpeg/decoder.h"
#include "core/jpeg/encode.h"
#include "core/jpeg/header.h"
#include "tests/libjpeg_reference.h"
#include "tests/photo.h"
#include "tests/regions.h"

namespace stoker {
namespace {

std::vector<uint8_t> decoded(JpegDecoder& decoder, const std::vector<uint8_t>& bytes, Rect region) {
  decoder.open(bytes);
  return tests::to_rgb(decoder.decode(region));
}

// The same as next() gives it, in several stretches.
std::vector<uint8_t> decoded_in_rows(JpegDecoder& decoder, const std::vector<uint8_t>& bytes, Rect region,
                                     size_t& stretches, bool& again) {
  decoder.open(bytes);
  decoder.start(region);
  std::vector<uint8_t> rgb(static_cast<size_t>(region.width) * static_cast<size_t>(region.height) *
                           kRgbBytes);
  const size_t stride = static_cast<size_t>(region.width) * kRgbBytes;
  for (int32_t end = 0; end < region.height;) {
    const RgbxRows rows = decoder.next();
    CHECK((rows.first == end || rows.first == 0));
    again = again || rows.first < end;
    end = rows.first + rows.pixels.size.height;
    REQUIRE(rows.pixels.size.height > 0);
    REQUIRE(end <= region.height);
    CHECK((end == region.height || end % 4 == 0));
    ++stretches;
    rgbx_to_rgb(rows.pixels, {rgb.data() + static_cast<size_t>(rows.first) * stride, stride});
  }
  CHECK_THROWS_AS(decoder.next(), Error);
  return rgb;
}

ErrorCode decode_error(const std::vector<uint8_t>& bytes, uint64_t max_pixels = kDefaultMaxPixels) {
  JpegDecoder decoder;
  try {
    const Extent size = decoder.open(bytes, max_pixels);
    decoder.decode({0, 0, size.width, size.height});
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("no error");
  return ErrorCode::kClosed;
}

TEST_CASE("a region equals the same part of the whole, for every sampling") {
  std::mt19937 random(3);
  JpegDecoder decoder;
  for (const JpegEncodeSpec spec :
       {JpegEncodeSpec{90, 1, 1}, {90, 2, 1}, {90, 2, 2}, {90, 1, 2}, {90, 4, 1}}) {
    for (const Extent size : {Extent{97, 61}, Extent{64, 64}, Extent{17, 130}, Extent{1, 1}}) {
      const auto bytes = tests::jpeg(size, spec);
      const auto whole = decoded(decoder, bytes, {0, 0, size.width, size.height});
      for (int round = 0; round < 60; ++round) {
        const Rect region = tests::any_region(size, random);
        REQUIRE(decoded(decoder, bytes, region) == tests::cut(whole, size, region));
      }
    }
  }
}

TEST_CASE("rows that come in stretches are those that come at once, whoever decodes them") {
  std::mt19937 random(4);
  JpegDecoder decoder;
  const Extent size{1100, 420};
  const auto pixels = tests::waves(size, 3, 1);
  bool again = false;
  for (const tests::ReferenceSpec& spec : {tests::ReferenceSpec{.across = 2, .down = 2},
                                           {.across = 1, .down = 2, .restart_interval = 9},
                                           {.across = 2, .down = 2, .progressive = true},
                                           {.progressive = true},
                                           {.across = 4},
                                           {.scan_by_scan = true}}) {
    const auto bytes = tests::reference_jpeg(pixels, size, 3, spec);
    size_t stretches = 0;
    for (const Rect region :
         {Rect{0, 0, 1100, 420}, {3, 17, 1001, 399}, {500, 1, 600, 401}, {9, 400, 7, 3}}) {
      const auto whole = decoded(decoder, bytes, region);
      REQUIRE(decoded_in_rows(decoder, bytes, region, stretches, again) == whole);
    }
    CHECK(stretches > 20);
  }
  CHECK_FALSE(again);
  for (const bool progressive : {false, true}) {
    CAPTURE(progressive);
    auto extra = tests::reference_jpeg(pixels, size, 3, {.across = 2, .down = 2, .progressive = progressive});
    const Rect all{0, 0, 1100, 420};
    const auto whole = decoded(decoder, extra, all);
    extra.insert(extra.end() - 2, {0x12, 0x34});  // which is left to libjpeg once the last row is reached
    size_t stretches = 0;
    again = false;
    CHECK(decoded_in_rows(decoder, extra, all, stretches, again) == whole);
    CHECK(again);
  }
}

TEST_CASE("the header says what was encoded") {
  const JpegInfo colour = probe_jpeg(tests::jpeg({33, 21}));
  CHECK(colour.width == 33);
  CHECK(colour.height == 21);
  CHECK(colour.color == JpegColor::kYcbcr);
  CHECK(std::string(subsampling_name(colour)) == "4:2:0");
  const JpegInfo grey = check_jpeg(tests::jpeg({5, 9}, {}, 1));
  CHECK(grey.color == JpegColor::kGrey);
  CHECK(std::string(subsampling_name(grey)) == "grey");
}

TEST_CASE("a file cut anywhere is an error of check_jpeg, and never a crash of the decoder") {
  const auto bytes = tests::jpeg({40, 30});
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    const std::vector<uint8_t> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(cut));
    CHECK_THROWS_AS(check_jpeg(part), Error);
    if (cut + 2 < bytes.size()) CHECK(decode_error(part) == ErrorCode::kBadImage);
  }
}

TEST_CASE("a decoder is as good as new after an error") {
  JpegDecoder decoder;
  auto bytes = tests::jpeg({40, 30});
  const auto whole = decoded(decoder, bytes, {0, 0, 40, 30});
  auto cut = bytes;
  cut.resize(bytes.size() / 2);
  CHECK_THROWS_AS(decoded(decoder, cut, {0, 0, 40, 30}), Error);
  CHECK_THROWS_AS(decoder.open(std::vector<uint8_t>{0xFF, 0xD8}), Error);
  CHECK_THROWS_AS(decoder.decode({0, 0, 1, 1}), Error);
  CHECK(decoded(decoder, bytes, {0, 0, 40, 30}) == whole);
}

TEST_CASE("an image that declares too many pixels is refused before memory is taken") {
  auto bytes = tests::jpeg({40, 30});
  CHECK(decode_error(bytes, 40 * 30 - 1) == ErrorCode::kImageTooLarge);
  for (size_t at = 0; at + 9 < bytes.size(); ++at) {
    if (bytes[at] != 0xFF || bytes[at + 1] != 0xC0) continue;
    bytes[at + 5] = bytes[at + 7] = 60'000 >> 8;
    bytes[at + 6] = bytes[at + 8] = 60'000 & 0xFF;
    break;
  }
  CHECK(decode_error(bytes) == ErrorCode::kImageTooLarge);
}

TEST_CASE("a region that leaves the image is refused") {
  const auto bytes = tests::jpeg({40, 30});
  JpegDecoder decoder;
  for (const Rect bad :
       {Rect{0, 0, 41, 30}, {-1, 0, 4, 4}, {0, 29, 4, 2}, {3, 3, 0, 3}, {39, 0, 2147483647, 1}}) {
    decoder.open(bytes);
    CHECK_THROWS_AS(decoder.decode(bad), Error);
  }
}

TEST_CASE("extraneous bytes before a marker are harmless") {
  auto bytes = tests::jpeg({40, 30});
  JpegDecoder decoder;
  const auto whole = decoded(decoder, bytes, {0, 0, 40, 30});
  bytes.insert(bytes.begin() + 2, {0x12, 0x34, 0x56});
  CHECK(decoded(decoder, bytes, {0, 0, 40, 30}) == whole);
  CHECK(check_jpeg(bytes).width == 40);
}

// Whether a file can be decoded: a region of it, or the whole where there is none.
bool decodes(JpegDecoder& decoder, const std::vector<uint8_t>& bytes, std::optional<Rect> region = {}) {
  try {
    const Extent size = decoder.open(bytes);
    decoder.decode(region.value_or(Rect{0, 0, size.width, size.height}));
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool passes(JpegDecoder& decoder, const std::vector<uint8_t>& bytes) {
  try {
    decoder.open(bytes);
    decoder.check();
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST_CASE("a file that lacks scans is refused by every path, and says which") {
  JpegDecoder decoder;
  const auto pixels = tests::waves({70, 50}, 3, 0);
  for (int missing = 0; missing < 10; ++missing) {
    const auto bytes = tests::reference_jpeg(pixels, {70, 50}, 3,
                                             {.across = 2, .progressive = true, .stops_before = missing});
    CAPTURE(missing);
    CHECK(decodes(decoder, bytes) == (missing == 0));
    CHECK(decodes(decoder, bytes, Rect{8, 8, 24, 24}) == (missing == 0));
    CHECK(passes(decoder, bytes) == (missing == 0));
    if (missing == 0) continue;
    decoder.open(bytes);
    CHECK_THROWS_WITH_AS(decoder.check(), doctest::Contains("scans are missing: component 1 of 3"), Error);
  }
  auto two = tests::reference_jpeg(pixels, {70, 50}, 3, {.scan_by_scan = true});
  CHECK(passes(decoder, two));
  const std::array<uint8_t, 2> start{0xFF, 0xDA}, end{0xFF, 0xD9};
  two.erase(std::find_end(two.begin(), two.end(), start.begin(), start.end()), two.end());
  two.insert(two.end(), end.begin(), end.end());
  decoder.open(two);
  CHECK_THROWS_WITH_AS(decoder.check(), doctest::Contains("none holds component 3 of 3"), Error);
  CHECK(!decodes(decoder, two));
}

TEST_CASE(
    "the check of entropy-coded data and a decode of the whole have one verdict on every changed byte") {
  JpegDecoder decoder;
  const auto pixels = tests::waves({70, 50}, 3, 0);
  size_t refused = 0, accepted = 0;
  for (const tests::ReferenceSpec& spec : {tests::ReferenceSpec{.across = 2, .down = 2},
                                           {.across = 2, .restart_interval = 3},
                                           {.across = 4},
                                           {.progressive = true},
                                           {.scan_by_scan = true}}) {
    const auto whole = tests::reference_jpeg(pixels, {70, 50}, 3, spec);
    for (size_t at = 2; at < whole.size(); ++at) {
      auto bytes = whole;
      bytes[at] ^= static_cast<uint8_t>(1U << at % 8);
      const bool good = decodes(decoder, bytes);
      CAPTURE(at);
      REQUIRE(passes(decoder, bytes) == good);
      ++(good ? accepted : refused);
    }
  }
  CHECK(refused > 1000);
  CHECK(accepted > 1000);
}

TEST_CASE("a file without an end is refused by a decode of its first rows, too") {
  JpegDecoder decoder;
  const Rect top{0, 0, 40, 8};
  for (const JpegEncodeSpec spec : {JpegEncodeSpec{90, 2, 2}, {90, 4, 1}, {90, 2, 2, 1}}) {
    auto bytes = tests::jpeg({40, 100}, spec);
    CHECK(decodes(decoder, bytes, top));
    auto longer = bytes;
    longer.insert(longer.end(), 100, 0);
    CHECK(decodes(decoder, longer, top));
    bytes.resize(bytes.size() * 3 / 4);
    CHECK(!decodes(decoder, bytes, top));
  }
}

TEST_CASE("what the header of a sequential scan says of a band of coefficients is ignored") {
  JpegDecoder decoder;
  for (const JpegEncodeSpec spec : {JpegEncodeSpec{90, 2, 2}, {90, 4, 1}}) {
    auto bytes = tests::jpeg({40, 30}, spec);
    const auto whole = decoded(decoder, bytes, {0, 0, 40, 30});
    size_t scan = 0;
    while (bytes[scan] != 0xFF || bytes[scan + 1] != 0xDA) ++scan;
    CHECK(bytes[scan + 12] == 63);
    bytes[scan + 12] = 0;
    CHECK(decoded(decoder, bytes, {0, 0, 40, 30}) == whole);
    CHECK(passes(decoder, bytes));
  }
}

TEST_CASE("senseless encodings are refused") {
  const uint8_t pixel[3] = {1, 2, 3};
  CHECK_THROWS_AS(encode_jpeg(pixel, {1, 1}, 3, {0, 1, 1}), Error);
  CHECK_THROWS_AS(encode_jpeg(pixel, {1, 1}, 3, {101, 1, 1}), Error);
  CHECK_THROWS_AS(encode_jpeg(pixel, {0, 1}, 3, {90, 1, 1}), Error);
  CHECK_THROWS_AS(encode_jpeg(pixel, {70'000, 1}, 3, {90, 1, 1}), Error);
}

}  // namespace
}  // namespace stoker

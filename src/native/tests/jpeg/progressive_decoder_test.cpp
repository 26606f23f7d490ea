// The decoder of progressive images against stock libjpeg, which shares no code with it.
#include "core/jpeg/region/progressive_decoder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core/base/errors.h"
#include "core/jpeg/decoder.h"
#include "tests/jpeg/region_decoding.h"
#include "tests/libjpeg_reference.h"
#include "tests/photo.h"
#include "tests/rounds.h"

namespace stoker {
namespace {

using tests::any_region;
using tests::cut;
using tests::decoded;
using tests::judged;
using tests::reference_jpeg;
using tests::reference_pixels;
using tests::ReferenceSpec;
using Bytes = std::vector<uint8_t>;
using Script = std::vector<jpeg_scan_info>;

constexpr Rect whole_of(Extent size) {
  return {0, 0, size.width, size.height};
}

// Scans in any order that libjpeg's encoder takes: DC of components together or apart, AC in any bands, each
// sent with any number of its lower bits left to later scans.
Script some_script(int components, std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  struct Band {
    int component, first, last, low;
  };
  Script script;
  std::vector<Band> bands;
  const int dc_low = below(4);
  const auto send_dc = [&](int high, int low) {
    const int apart = components == 1 ? 1 : below(4);  // how many of the components come alone
    if (apart < 2 && components == 3) {
      if (apart == 0) return script.push_back({3, {0, 1, 2}, 0, 0, high, low});
      script.push_back({1, {0}, 0, 0, high, low});
      return script.push_back({2, {1, 2}, 0, 0, high, low});
    }
    for (int i = 0; i < components; ++i) script.push_back({1, {i}, 0, 0, high, low});
  };
  send_dc(0, dc_low);
  for (int i = 0; i < components; ++i) {
    for (int first = 1; first < 64;) {
      const int last = below(3) == 0 ? 63 : std::min(63, first + below(20));
      bands.push_back({i, first, last, below(4)});
      first = last + 1;
    }
  }
  std::shuffle(bands.begin(), bands.end(), random);
  for (const Band& band : bands) {
    script.push_back({1, {band.component}, band.first, band.last, 0, band.low});
  }
  for (int low = dc_low; low > 0; --low) send_dc(low, low - 1);
  for (bool more = true; more;) {
    more = false;
    for (Band& band : bands) {
      if (band.low == 0) continue;
      if (below(2) == 0) {
        script.push_back({1, {band.component}, band.first, band.last, band.low, band.low - 1});
        --band.low;
      }
      more = more || band.low > 0;
    }
  }
  return script;
}

TEST_CASE("regions are those of libjpeg's whole image: every sampling, restart interval and scan script") {
  std::mt19937 random(21);
  for (const bool fastest : {true, false}) {
    CAPTURE(fastest);
    auto decoder = tests::decoder_of<ProgressiveDecoder>(fastest);
    for (int round = 0; round < 200; ++round) {
      const Extent size{5 + static_cast<int32_t>(random() % 120), 1 + static_cast<int32_t>(random() % 90)};
      const int channels = random() % 5 == 0 ? 1 : 3;
      const int qualities[] = {3, 50, 90, 100}, intervals[] = {0, 1, 2, 5, 13, 1000};
      ReferenceSpec spec{.quality = qualities[random() % 4],
                         .across = channels == 3 ? 1 + static_cast<int>(random() % 2) : 1,
                         .down = channels == 3 ? 1 + static_cast<int>(random() % 2) : 1,
                         .restart_interval = intervals[random() % 6],
                         .progressive = true};
      if (random() % 3 != 0) spec.script = some_script(channels, random);
      CAPTURE(round);
      CAPTURE(size.width);
      CAPTURE(size.height);
      CAPTURE(channels);
      CAPTURE(spec.quality);
      CAPTURE(spec.across);
      CAPTURE(spec.down);
      CAPTURE(spec.restart_interval);
      const auto pixels =
          random() % 2 == 0 ? tests::noise(size, channels, random()) : tests::waves(size, channels, round);
      const auto file = reference_jpeg(pixels, size, channels, spec);
      tests::check_regions(decoder, file, size, 8, random);
      FrameReader headers;
      REQUIRE((headers.open(file) && decoder.open(headers)));
      CHECK(decoder.check());
    }
  }
}

TEST_CASE("scans that are read side by side, some rows at a time, give libjpeg's pixels") {
  std::mt19937 random(25);
  const int intervals[] = {0, 1, 13, 1000};
  for (const bool fastest : {true, false}) {
    auto decoder = tests::decoder_of<ProgressiveDecoder>(fastest);
    for (int round = 0; round < 24 / tests::kThinned; ++round) {
      // Of 4:2:0, 128 KB hold a row of MCUs or two; of grey images and narrow regions, more.
      const Extent size{1200 + static_cast<int32_t>(random() % 400),
                        40 + static_cast<int32_t>(random() % 90)};
      const int channels = round % 3 == 0 ? 1 : 3;
      ReferenceSpec spec{.quality = 75,
                         .across = channels == 3 ? 1 + static_cast<int>(random() % 2) : 1,
                         .down = channels == 3 ? 1 + static_cast<int>(random() % 2) : 1,
                         .restart_interval = intervals[random() % 4],
                         .progressive = true};
      if (round % 4 != 0) spec.script = some_script(channels, random);
      CAPTURE(round);
      CAPTURE(size.width);
      CAPTURE(size.height);
      CAPTURE(spec.across);
      CAPTURE(spec.down);
      CAPTURE(spec.restart_interval);
      const auto file = reference_jpeg(tests::waves(size, channels, round), size, channels, spec);
      tests::check_regions(decoder, file, size, 4, random);
      FrameReader headers;
      REQUIRE((headers.open(file) && decoder.open(headers)));
      CHECK(decoder.check());
    }
  }
}

TEST_CASE("a large smooth image, most of whose blocks end together, gives libjpeg's pixels") {
  const Extent size{1500, 1100};
  std::mt19937 random(22);
  Bytes pixels = tests::waves(size, 3, 1);
  for (size_t i = 0; i < pixels.size(); ++i) {
    if (i / 3 % 1500 > 200) pixels[i] = static_cast<uint8_t>(i / 3 / 1500 / 5);
  }
  for (const bool fastest : {true, false}) {
    auto decoder = tests::decoder_of<ProgressiveDecoder>(fastest);
    const auto file = reference_jpeg(pixels, size, 3, {.across = 2, .down = 2, .progressive = true});
    tests::check_regions(decoder, file, size, 5, random);
  }
}

TEST_CASE("what is not a whole progressive image is left to libjpeg") {
  const Extent size{40, 30};
  ProgressiveDecoder decoder;
  const auto pixels = tests::waves(size, 3, 1);
  const auto decodes = [&](const ReferenceSpec& spec) {
    return !decoded(decoder, reference_jpeg(pixels, size, 3, spec), whole_of(size)).empty();
  };
  CHECK(decodes({.progressive = true}));
  CHECK_FALSE(decodes({}));
  CHECK_FALSE(decodes({.across = 4, .progressive = true}));
  CHECK_FALSE(decodes({.progressive = true, .arithmetic = true}));
  CHECK_FALSE(decodes({.scan_by_scan = true}));
  for (int missing = 1; missing < 10; ++missing) {
    CAPTURE(missing);
    const ReferenceSpec spec{.progressive = true, .stops_before = missing};
    CHECK_FALSE(decodes(spec));
    FrameReader headers;
    const auto file = reference_jpeg(pixels, size, 3, spec);
    CHECK((headers.open(file) && decoder.open(headers) && !decoder.check()));
  }
  // What stands between the last scan and the end of the image.
  for (const Bytes& extra : {Bytes{0}, {0xFF, 0xD0}, {0xFF, 0xD0, 0x12}, {0xFF}}) {
    auto file = reference_jpeg(pixels, size, 3, {.progressive = true});
    file.insert(file.end() - 2, extra.begin(), extra.end());
    CAPTURE(extra.size());
    CHECK(decoded(decoder, file, whole_of(size)).empty());
    FrameReader headers;
    CHECK((headers.open(file) && decoder.open(headers) && !decoder.check()));
  }
  const Extent narrow{4, 30};
  const auto slim = reference_jpeg(tests::waves(narrow, 3, 1), narrow, 3, {.across = 2, .progressive = true});
  CHECK(decoded(decoder, slim, whole_of(narrow)).empty());
}

TEST_CASE("more scans than libjpeg may read are left to it") {
  // Each coefficient in a scan of its own and all bits one after another: 1 + 63 * 5 + 4 scans.
  Script script{{1, {0}, 0, 0, 0, 4}};
  for (int low = 4; low >= 0; --low) {
    if (low < 4) script.push_back({1, {0}, 0, 0, low + 1, low});
    for (int k = 1; k < 64; ++k) script.push_back({1, {0}, k, k, low == 4 ? 0 : low + 1, low});
  }
  const Extent size{24, 16};
  const auto file =
      reference_jpeg(tests::waves(size, 1, 1), size, 1, {.progressive = true, .script = script});
  ProgressiveDecoder decoder;
  CHECK(decoded(decoder, file, whole_of(size)).empty());
  JpegDecoder both;
  both.open(file);
  CHECK_THROWS_WITH_AS(both.decode(whole_of(size)), doctest::Contains("more than 256 scans"), Error);
}

// Whether libjpeg reads it without a word, and no scan is missing.
bool is_whole(JpegDecoder& decoder, const Bytes& file) {
  try {
    decoder.open(file);
    decoder.check();
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST_CASE("a changed byte of a progressive image gives libjpeg's pixels or an error, never others") {
  const Extent size{64, 48};
  std::mt19937 random(23);
  JpegDecoder decoder;
  auto own = tests::decoder_of<ProgressiveDecoder>(true);
  size_t ours = 0, refused = 0;
  for (const int interval : {0, 3}) {
    for (const int channels : {1, 3}) {
      ReferenceSpec spec{.across = channels == 3 ? 2 : 1,
                         .down = channels == 3 ? 2 : 1,
                         .restart_interval = interval,
                         .progressive = true};
      if (interval == 0) spec.script = some_script(channels, random);
      const auto whole = reference_jpeg(tests::waves(size, channels, 2), size, channels, spec);
      for (size_t at = 0; at < whole.size(); ++at) {
        auto file = whole;
        file[at] = static_cast<uint8_t>(file[at] ^ (1U << random() % 8));
        CAPTURE(at);
        const auto expected = reference_pixels(file);
        const Rect all = whole_of(size);
        if (expected.size() != size_t{64} * 48 * kRgbBytes) {  // refused, or of another size
          if (expected.empty()) REQUIRE(decoded(own, file, all).empty());
          continue;
        }
        const Rect region = any_region(size, random);
        const auto result = judged(decoder, file, region);
        const auto alone = decoded(own, file, region);
        if (!alone.empty()) REQUIRE(alone == cut(expected, size, region));
        if (is_whole(decoder, file)) {
          REQUIRE(result == cut(expected, size, region));
        } else {
          REQUIRE(result.empty());
          REQUIRE(alone.empty());
          ++refused;
        }
        ours += alone.empty() ? 0 : 1;
      }
    }
  }
  CHECK(ours > 1000);
  CHECK(refused > 0);
}

TEST_CASE("a file cut at any byte and ended there has one verdict, whatever part of it is decoded") {
  const Extent size{56, 40};
  const auto file = reference_jpeg(tests::waves(size, 3, 3), size, 3, {.across = 2, .progressive = true});
  JpegDecoder decoder;
  for (size_t cut_at = 2; cut_at < file.size() - 2; ++cut_at) {
    Bytes part(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(cut_at));
    part.insert(part.end(), {0xFF, 0xD9});
    CAPTURE(cut_at);
    REQUIRE(judged(decoder, part, {0, 0, 8, 8}).empty());
    REQUIRE_FALSE(is_whole(decoder, part));
  }
}

TEST_CASE("coefficients that no encoder makes give libjpeg's pixels in progressive images, too") {
  std::mt19937 random(24);
  size_t ours = 0;
  for (const bool fastest : {true, false}) {
    auto decoder = tests::decoder_of<ProgressiveDecoder>(fastest);
    for (int round = 0; round < 200; ++round) {
      const Extent size{8 + static_cast<int32_t>(random() % 50), 8 + static_cast<int32_t>(random() % 40)};
      const auto pixels = random() % 2 == 0 ? tests::noise(size, 1, random())
                                            : tests::waves(size, 1, static_cast<int>(random() % 9));
      auto file = reference_jpeg(pixels, size, 1,
                                 {.quality = 100 - static_cast<int>(random() % 3) * 20, .progressive = true});
      const unsigned char quant_table[] = {0xFF, 0xDB, 0x00, 0x43, 0x00};
      auto at = std::search(file.begin(), file.end(), std::begin(quant_table), std::end(quant_table));
      REQUIRE(at != file.end());
      at += std::size(quant_table);
      const unsigned most = 1U << (1 + random() % 8);
      for (auto value = at + 1; value != at + 64; ++value)
        *value = static_cast<uint8_t>(1 + random() % (most - 1));
      const auto expected = reference_pixels(file);
      const auto result = decoded(decoder, file, whole_of(size));
      CAPTURE(round);
      REQUIRE_FALSE(expected.empty());
      if (result.empty()) continue;  // left to libjpeg
      ++ours;
      REQUIRE(result == expected);
    }
  }
  CHECK(ours > 200);
}

}  // namespace
}  // namespace stoker

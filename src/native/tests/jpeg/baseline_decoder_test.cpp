// The decoder of baseline images against stock libjpeg, which shares no code with it.
#include "core/jpeg/region/baseline_decoder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/base/errors.h"
#include "core/jpeg/decoder.h"
#include "core/jpeg/transcode.h"
#include "tests/jpeg/region_decoding.h"
#include "tests/libjpeg_reference.h"
#include "tests/photo.h"

namespace stoker {
namespace {

using tests::any_region;
using tests::cut;
using tests::decoded;
using tests::judged;
using tests::noise;
using tests::reference_jpeg;
using tests::reference_pixels;
using tests::ReferenceSpec;
using tests::to_rgb;

TEST_CASE("regions are those of libjpeg's whole image: every sampling, restart interval and quality") {
  std::mt19937 random(11);
  for (size_t kind = 0; kind < 2; ++kind) {  // the fastest kernels, and the portable ones
    CAPTURE(kind);
    auto decoder = tests::decoder_of<BaselineDecoder>(kind == 0);
    for (int round = 0; round < 220; ++round) {
      const Extent size{5 + static_cast<int32_t>(random() % 120), 1 + static_cast<int32_t>(random() % 90)};
      const int channels = random() % 5 == 0 ? 1 : 3;
      const int qualities[] = {3, 50, 90, 100}, intervals[] = {0, 1, 2, 5, 13, 1000};
      const ReferenceSpec spec{qualities[random() % 4],
                               channels == 3 ? 1 + static_cast<int>(random() % 2) : 1,
                               channels == 3 ? 1 + static_cast<int>(random() % 2) : 1,
                               intervals[random() % 6],
                               random() % 2 == 0,
                               false};
      CAPTURE(size.width);
      CAPTURE(size.height);
      CAPTURE(channels);
      CAPTURE(spec.quality);
      CAPTURE(spec.across);
      CAPTURE(spec.down);
      CAPTURE(spec.restart_interval);
      const auto pixels =
          random() % 2 == 0 ? noise(size, channels, random()) : tests::waves(size, channels, round);
      const auto file = reference_jpeg(pixels, size, channels, spec);
      tests::check_regions(decoder, file, size, 12, random);
    }
  }
}

TEST_CASE("what is not plain baseline is left to libjpeg") {
  const Extent size{40, 30};
  BaselineDecoder decoder;
  const auto pixels = tests::waves(size, 3, 1);
  CHECK(decoded(decoder, reference_jpeg(pixels, size, 3, {.progressive = true}), {0, 0, 40, 30}).empty());
  CHECK(decoded(decoder, reference_jpeg(pixels, size, 3, {.across = 4}), {0, 0, 40, 30}).empty());
  CHECK(
      decoded(decoder, reference_jpeg(tests::waves({4, 30}, 3, 1), {4, 30}, 3, {.across = 2}), {0, 0, 4, 30})
          .empty());
  auto extra = reference_jpeg(pixels, size, 3, {});
  extra.insert(extra.end() - 2, {0x12, 0x34});
  CHECK(decoded(decoder, extra, {0, 0, 40, 30}).empty());
  CHECK_FALSE(decoded(decoder, extra, {0, 0, 40, 8}).empty());
}

TEST_CASE("a changed byte gives libjpeg's pixels or an error, never others") {
  const Extent size{64, 48};
  std::mt19937 random(5);
  JpegDecoder decoder;
  for (const int interval : {0, 3}) {
    const auto whole = reference_jpeg(tests::waves(size, 3, 2), size, 3,
                                      {.across = 2, .down = 2, .restart_interval = interval});
    for (size_t at = 0; at < whole.size(); ++at) {
      auto file = whole;
      file[at] = static_cast<uint8_t>(file[at] ^ (1U << random() % 8));
      const auto expected = reference_pixels(file);
      if (expected.size() != size_t{64} * 48 * kRgbBytes)
        continue;  // its header says another size, or it is refused
      const Rect region = any_region(size, random);
      const auto result = judged(decoder, file, region);
      CAPTURE(at);
      REQUIRE(result == cut(expected, size, region));
    }
  }
}

TEST_CASE("coefficients that no encoder makes give libjpeg's pixels") {
  std::mt19937 random(13);
  size_t ours = 0;
  for (size_t kind = 0; kind < 2; ++kind) {  // the fastest kernels, and the portable ones
    auto decoder = tests::decoder_of<BaselineDecoder>(kind == 0);
    for (int round = 0; round < 300; ++round) {
      const Extent size{8 + static_cast<int32_t>(random() % 50), 8 + static_cast<int32_t>(random() % 40)};
      const auto pixels = random() % 2 == 0 ? noise(size, 1, random())
                                            : tests::waves(size, 1, static_cast<int>(random() % 9));
      auto file = reference_jpeg(pixels, size, 1, {.quality = 100 - static_cast<int>(random() % 3) * 20});
      // Coefficients that were divided by small numbers are multiplied by any: the first of them, and so the
      // brightness, by less.
      const unsigned char quant_table[] = {0xFF, 0xDB, 0x00, 0x43, 0x00};
      auto at = std::search(file.begin(), file.end(), std::begin(quant_table), std::end(quant_table));
      REQUIRE(at != file.end());
      at += std::size(quant_table);
      const unsigned most = 1U << (1 + random() % 8);
      for (auto value = at + 1; value != at + 64; ++value)
        *value = static_cast<uint8_t>(1 + random() % (most - 1));
      const auto expected = reference_pixels(file);
      const auto result = decoded(decoder, file, {0, 0, size.width, size.height});
      CAPTURE(round);
      REQUIRE_FALSE(expected.empty());
      if (result.empty()) continue;  // left to libjpeg
      ++ours;
      REQUIRE(result == expected);
    }
  }
  CHECK(ours > 300);
}

struct Marker {
  size_t at;  // of its 0xFF
};

std::vector<Marker> restart_markers(const std::vector<uint8_t>& file) {
  std::vector<Marker> markers;
  for (size_t i = 0; i + 1 < file.size(); ++i) {
    if (file[i] == 0xFF && file[i + 1] >= 0xD0 && file[i + 1] <= 0xD7) markers.push_back({i});
  }
  return markers;
}

TEST_CASE("restart markers that are missing, repeated or out of turn are errors wherever the region lies") {
  const Extent size{96, 64};
  const auto file = reference_jpeg(tests::waves(size, 3, 4), size, 3, {.restart_interval = 4});
  const auto markers = restart_markers(file);
  REQUIRE(markers.size() == 12 * 8 / 4 - 1);
  const auto begin = file.begin();
  const auto position = [&](size_t i) { return static_cast<ptrdiff_t>(markers[i].at); };
  std::vector<std::vector<uint8_t>> damaged;
  auto removed = file;
  removed.erase(removed.begin() + position(9), removed.begin() + position(9) + 2);
  damaged.push_back(removed);
  auto turned = file;
  std::swap(turned[markers[4].at + 1], turned[markers[5].at + 1]);
  damaged.push_back(turned);
  auto emptied = file;  // a run of markers: the data between two are gone
  emptied.erase(emptied.begin() + position(6) + 2, emptied.begin() + position(7));
  damaged.push_back(emptied);
  damaged.emplace_back(begin, begin + position(15));
  auto unmarked = file;  // no marker at all
  for (size_t i = markers.size(); i-- > 0;)
    unmarked.erase(unmarked.begin() + position(i), unmarked.begin() + position(i) + 2);
  damaged.push_back(unmarked);
  JpegDecoder decoder;
  for (size_t i = 0; i < damaged.size(); ++i) {
    CAPTURE(i);
    CHECK(reference_pixels(damaged[i]).empty());
    for (const Rect region : {Rect{0, 0, 96, 64}, Rect{0, 0, 8, 8}, Rect{80, 50, 9, 9}}) {
      CHECK(judged(decoder, damaged[i], region).empty());
    }
  }
}

TEST_CASE("an image without its tables does not borrow those of the one before") {
  const Extent size{40, 30};
  const Rect all{0, 0, 40, 30};
  auto bare = reference_jpeg(tests::waves(size, 3, 1), size, 3, {});  // the tables that are assumed
  const auto other =
      reference_jpeg(noise(size, 3, 1), size, 3, {.quality = 40, .optimised = true, .progressive = true});
  for (size_t i = 0; i + 1 < bare.size(); ++i) {
    if (bare[i] == 0xFF && bare[i + 1] == 0xC4) bare[i + 1] = 0xEF;  // its Huffman tables become comments
  }
  JpegDecoder fresh, used;
  judged(used, other, all);
  CHECK(judged(used, bare, all) == judged(fresh, bare, all));
  CHECK(judged(used, bare, all) == reference_pixels(bare));
  CHECK_FALSE(reference_pixels(bare).empty());
}

TEST_CASE("a run of markers that makes up for missing ones does not go unseen") {
  const Extent size{96, 64};
  auto file = reference_jpeg(tests::waves(size, 3, 4), size, 3, {.restart_interval = 4});
  const auto markers = restart_markers(file);
  // Eight segments become one, and eight empty ones follow, so that numbers and turns are right.
  std::vector<uint8_t> run;
  for (size_t i = 2; i < 10; ++i) run.insert(run.end(), {0xFF, file[markers[i].at + 1]});
  file.insert(file.begin() + static_cast<ptrdiff_t>(markers[10].at), run.begin(), run.end());
  for (size_t i = 10; i-- > 2;) {
    const auto from = file.begin() + static_cast<ptrdiff_t>(markers[i].at);
    file.erase(from, from + 2);
  }
  JpegDecoder decoder;
  CHECK(judged(decoder, file, {0, 0, 8, 8}).empty());
  CHECK(judged(decoder, file, {0, 40, 96, 8}).empty());
}

TEST_CASE("all kernels give the bytes of the portable ones, whatever the values are") {
  std::mt19937 random(9);
  constexpr size_t kBlocks = 7, kStride = kBlocks * 8 + 2 * kPlanePadding;
  for (const PlaneKernels* kernels : plane_kernels()) {
    CAPTURE(kernels->name);
    for (int round = 0; round < 2000; ++round) {
      std::vector<int16_t> values(kBlocks * 64);
      std::vector<uint8_t> last(kBlocks);
      uint16_t quant[64];
      const bool wild = round % 2 == 1;
      for (uint16_t& q : quant) q = static_cast<uint16_t>(wild ? 1 + random() % 255 : 1 + random() % 20);
      for (size_t i = 0; i < kBlocks; ++i) {
        last[i] = static_cast<uint8_t>(random() % 3 == 0 ? 0 : random() % 64);
        for (size_t k = 0; k <= last[i]; ++k) {
          const auto value = wild ? static_cast<int16_t>(random()) : static_cast<int16_t>(random() % 61 - 30);
          values[i * 64 + kZigzag[k]] = value;
        }
        if (last[i] == 0) values[i * 64] = static_cast<int16_t>(values[i * 64] % (8192 / quant[0]));
      }
      auto same = values;
      std::vector<uint8_t> out(8 * kStride), expected(8 * kStride);
      kernels->inverse_dct(values.data(), kBlocks, last.data(), quant, out.data(), kStride);
      plane_kernels().back()->inverse_dct(same.data(), kBlocks, last.data(), quant, expected.data(), kStride);
      for (size_t y = 0; y < 8; ++y) {
        REQUIRE(std::memcmp(&out[y * kStride], &expected[y * kStride], kBlocks * 8) == 0);
      }
      REQUIRE(values == std::vector<int16_t>(kBlocks * 64));
      REQUIRE(same == values);
    }
  }
}

// The definition, in double precision.
double shrunken_sample(const int16_t* values, const uint16_t* quant, size_t side, size_t x, size_t y) {
  const auto factor = [&](size_t k, size_t i) {
    if (k == 0) return std::sqrt(0.125);
    return std::cos((2.0 * static_cast<double>(i) + 1) * static_cast<double>(k) * std::acos(-1.0) /
                    (2.0 * static_cast<double>(side))) /
           2;
  };
  double sum = 128;
  for (size_t v = 0; v < side; ++v) {
    for (size_t u = 0; u < side; ++u)
      sum += values[v * 8 + u] * quant[v * 8 + u] * factor(u, x) * factor(v, y);
  }
  return std::clamp(sum, 0.0, 255.0);
}

TEST_CASE("blocks of lower frequencies alone are those of the definition, with all kernels") {
  std::mt19937 random(12);
  constexpr size_t kBlocks = 5;
  for (const PlaneKernels* kernels : plane_kernels()) {
    CAPTURE(kernels->name);
    for (const size_t side : {size_t{4}, size_t{2}, size_t{1}}) {
      const size_t stride = kBlocks * side;
      for (int round = 0; round < 300; ++round) {
        std::vector<int16_t> values(kBlocks * 64);
        uint16_t quant[64];
        for (uint16_t& q : quant) q = static_cast<uint16_t>(1 + random() % 20);
        for (int16_t& value : values) value = static_cast<int16_t>(static_cast<int>(random() % 61) - 30);
        const auto before = values;
        std::vector<uint8_t> out(side * stride);
        kernels->small_inverse_dct(values.data(), kBlocks, quant, side, out.data(), stride);
        REQUIRE(values == std::vector<int16_t>(kBlocks * 64));
        for (size_t i = 0; i < out.size(); ++i) {
          const size_t x = i % stride, y = i / stride;
          const double wanted = shrunken_sample(&before[x / side * 64], quant, side, x % side, y);
          REQUIRE(std::abs(out[i] - wanted) < 0.75);
        }
      }
    }
  }
}

TEST_CASE("a region of a shrunken image is that part of the whole one, and about its average") {
  std::mt19937 random(13);
  JpegDecoder decoder;
  BaselineDecoder own;
  ProgressiveDecoder progressive;
  for (int round = 0; round < 60; ++round) {
    const Extent size{20 + static_cast<int32_t>(random() % 120), 20 + static_cast<int32_t>(random() % 90)};
    const ReferenceSpec spec{.across = 1 + round % 2,
                             .down = 1 + round / 2 % 2,
                             .restart_interval = round % 3 * 4,
                             .progressive = round % 5 == 4};
    std::vector<uint8_t> smooth;
    for (int32_t i = 0; i < size.width * size.height; ++i) {
      const double x = i % size.width, y = i / size.width;
      smooth.push_back(static_cast<uint8_t>(128 + 100 * std::sin(x / 17) * std::cos(y / 23)));
      smooth.push_back(static_cast<uint8_t>(128 + 100 * std::sin(x / 19 + 1)));
      smooth.push_back(static_cast<uint8_t>(128 + 100 * std::cos(y / 29)));
    }
    const auto file = reference_jpeg(smooth, size, 3, spec);
    for (const int32_t shrink : {2, 4, 8}) {
      CAPTURE(shrink);
      const Extent small{(size.width + shrink - 1) / shrink, (size.height + shrink - 1) / shrink};
      const Rect all{0, 0, small.width, small.height};
      decoder.open(file);
      const auto whole = to_rgb(decoder.decode(all, shrink));
      for (int part = 0; part < 5; ++part) {
        const Rect region = any_region(small, random);
        const auto pixels = spec.progressive ? decoded(progressive, file, region, shrink)
                                             : decoded(own, file, region, shrink);
        REQUIRE(pixels == cut(whole, small, region));
      }
      // The same coefficients in a sequential scan.
      const auto sequential = transcode_jpeg(file);
      REQUIRE(sequential);
      REQUIRE(decoded(own, *sequential, all, shrink) == whole);
      for (int32_t y = 0; y < size.height / shrink; ++y) {
        for (int32_t x = 0; x < size.width / shrink; ++x) {
          for (int32_t c = 0; c < 3; ++c) {
            double sum = 0;
            for (int32_t i = 0; i < shrink * shrink; ++i) {
              sum += smooth[static_cast<size_t>(
                  ((y * shrink + i / shrink) * size.width + x * shrink + i % shrink) * 3 + c)];
            }
            REQUIRE(std::abs(whole[static_cast<size_t>((y * small.width + x) * 3 + c)] -
                             sum / shrink / shrink) < 10 + 5 * shrink / 2);
          }
        }
      }
    }
  }
}

TEST_CASE("the row kernels give the bytes of the portable ones") {
  std::mt19937 random(10);
  for (const PlaneKernels* kernels : plane_kernels()) {
    CAPTURE(kernels->name);
    for (size_t n = 1; n < 80; ++n) {
      std::vector<uint8_t> rows(3 * (n + 2 * kPlanePadding));
      for (uint8_t& value : rows)
        value = static_cast<uint8_t>(random() % 4 == 0 ? random() % 2 * 255 : random());
      const uint8_t *a = rows.data() + kPlanePadding, *b = a + n + kPlanePadding,
                    *c = b + n + kPlanePadding / 2;
      const auto same = [&](const auto& call, size_t size) {
        std::vector<uint8_t> out(size + 4 * kPlanePadding), expected(size + 4 * kPlanePadding);
        call(*kernels, out.data());
        call(*plane_kernels().back(), expected.data());
        return std::memcmp(out.data(), expected.data(), size) == 0;
      };
      CHECK(same([&](const PlaneKernels& k, uint8_t* out) { k.double_columns(a, n, out); }, 2 * n));
      CHECK(same([&](const PlaneKernels& k, uint8_t* out) { k.between_rows(a, b, 1, n, out); }, n));
      CHECK(same([&](const PlaneKernels& k, uint8_t* out) { k.double_both(a, b, n, out); }, 2 * n));
      CHECK(same([&](const PlaneKernels& k, uint8_t* out) { k.grey_to_rgbx(a, n, out); }, 4 * n));
      CHECK(same([&](const PlaneKernels& k, uint8_t* out) { k.to_rgbx(a, b, c, n, out); }, 4 * n));
    }
  }
}

}  // namespace
}  // namespace stoker

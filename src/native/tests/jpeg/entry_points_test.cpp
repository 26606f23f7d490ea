// Decoding that begins in the middle of an image, beside stock libjpeg's decode of all of it.
#include "core/jpeg/entry_points.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "core/jpeg/decoder.h"
#include "core/shards/crc32c.h"
#include "tests/jpeg/region_decoding.h"
#include "tests/libjpeg_reference.h"
#include "tests/photo.h"
#include "tests/rounds.h"

namespace stoker {
namespace {

using tests::any_region;
using tests::cut;
using tests::reference_jpeg;
using tests::reference_pixels;
using Bytes = std::vector<uint8_t>;

EntryPoints entries_of(EntryTable& table, const Bytes& file, uint64_t number = 0) {
  return table.of(number, file.size(), crc32c(file));
}

// As a loader decodes; empty for kBadImage.
Bytes pixels_of(JpegDecoder& decoder, const Bytes& file, Rect region, int32_t shrink, EntryPoints* entries) {
  Bytes pixels;
  try {
    decoder.open(file);
    decoder.start(region, shrink, entries);
    for (int32_t end = 0; end < region.height;) {
      const RgbxRows rows = decoder.next();
      pixels.resize(static_cast<size_t>(rows.first * region.width) * kRgbBytes);
      const Bytes more = tests::to_rgb(rows.pixels);
      pixels.insert(pixels.end(), more.begin(), more.end());
      end = rows.first + rows.pixels.size.height;
    }
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBadImage);
    return {};
  }
  return pixels;
}

size_t noted(const EntryPoints& entries) {
  size_t count = 0;
  for (size_t i = 0; i < entries.most(); ++i) count += entries.find(i) ? 1 : 0;
  return count;
}

Bytes photo(Extent size, uint32_t seed, const tests::ReferenceSpec& spec = {}) {
  return reference_jpeg(tests::waves(size, 3, static_cast<int>(seed)), size, 3, spec);
}

TEST_CASE("an entry point fits into a word, or is none") {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const auto prediction = [&] { return static_cast<int32_t>(random() % 4096) - 2048; };
    const auto byte = static_cast<uint32_t>(1 + random() % ((1U << 25) - 1));
    const EntryPoint point{
        byte, static_cast<uint32_t>(random() % 8), {prediction(), prediction(), prediction()}};
    REQUIRE(pack(point) != 0);
    REQUIRE(unpack(pack(point)) == point);
  }
  CHECK(pack({1U << 25, 0, {}}) == 0);
  CHECK(pack({1, 0, {2048, 0, 0}}) == 0);
  CHECK(pack({1, 0, {0, 0, -2049}}) == 0);
}

TEST_CASE("regions from entry points on are those of libjpeg's whole image") {
  std::mt19937 random(3);
  size_t entered = 0;
  for (size_t kind = 0; kind < 2; ++kind) {  // the fastest kernels, and the portable ones
    auto baseline = tests::decoder_of<BaselineDecoder>(kind == 0);
    JpegDecoder plain;
    for (int round = 0; round < 60; ++round) {
      const Extent size{5 + static_cast<int32_t>(random() % 200), 1 + static_cast<int32_t>(random() % 200)};
      const int channels = random() % 5 == 0 ? 1 : 3;
      const int qualities[] = {3, 50, 90, 100}, intervals[] = {0, 0, 0, 5};
      const tests::ReferenceSpec spec{qualities[random() % 4],
                                      channels == 3 ? 1 + static_cast<int>(random() % 2) : 1,
                                      channels == 3 ? 1 + static_cast<int>(random() % 2) : 1,
                                      intervals[random() % 4],
                                      random() % 2 == 0,
                                      false};
      CAPTURE(size.width);
      CAPTURE(size.height);
      CAPTURE(spec.restart_interval);
      const auto pixels =
          random() % 2 == 0 ? tests::noise(size, channels, random()) : tests::waves(size, channels, round);
      const auto file = reference_jpeg(pixels, size, channels, spec);
      const auto whole = reference_pixels(file);
      EntryTable table(1, random() % 2 == 0 ? EntryTable::kBytes : 8 * (1 + EntryTable::kFewestPoints));
      EntryPoints entries = entries_of(table, file);
      for (int part = 0; part < 20; ++part) {
        const int32_t shrink = part % 4 == 3 ? 1 << random() % 4 : 1;
        const Extent shown{(size.width + shrink - 1) / shrink, (size.height + shrink - 1) / shrink};
        const Rect region = any_region(shown, random);
        FrameReader headers;
        REQUIRE(headers.open(file));
        if (!baseline.open(headers)) break;
        const Bytes region_pixels = tests::decoded(baseline, file, region, shrink, entries);
        entered += baseline.entered() ? 1 : 0;
        if (spec.restart_interval != 0) REQUIRE_FALSE(baseline.entered());
        REQUIRE(region_pixels ==
                (shrink == 1 ? cut(whole, size, region) : pixels_of(plain, file, region, shrink, nullptr)));
      }
      CHECK((spec.restart_interval == 0 || noted(entries) == 0));
    }
  }
  CHECK(entered > 500);
}

TEST_CASE("what was noted of other bytes is not used") {
  const Extent size{300, 200};
  const Rect region{90, 100, 60, 50};
  std::mt19937 random(4);
  EntryTable table(1);
  JpegDecoder decoder;
  const Bytes first = photo(size, 1);
  EntryPoints of_first = entries_of(table, first);
  REQUIRE(pixels_of(decoder, first, region, 1, &of_first) == cut(reference_pixels(first), size, region));
  const size_t known = noted(of_first);
  REQUIRE(known > 20);
  Bytes shorter = first;
  shorter.erase(shorter.end() - 30);
  const Bytes others[] = {photo(size, 2), shorter};
  for (const Bytes& other : others) {
    EntryPoints entries = entries_of(table, other);
    CHECK(noted(entries) == 0);
    CHECK(pixels_of(decoder, other, region, 1, &entries) == pixels_of(decoder, other, region, 1, nullptr));
    CHECK(noted(entries) == 0);
    CHECK(noted(of_first) == known);
  }
  // One byte changed, and no other number of them.
  for (size_t at = 300; at < first.size(); at += 7 * tests::kThinned) {
    Bytes changed = first;
    changed[at] = static_cast<uint8_t>(changed[at] ^ (1U << random() % 8));
    EntryPoints entries = entries_of(table, changed);
    REQUIRE(pixels_of(decoder, changed, region, 1, &entries) ==
            pixels_of(decoder, changed, region, 1, nullptr));
  }
}

TEST_CASE("a damaged image gives with entry points what it gives without") {
  const Extent size{96, 80};
  std::mt19937 random(6);
  const Bytes whole = photo(size, 3, {.across = 2, .down = 2});
  JpegDecoder decoder, plain;
  for (size_t at = 2; at < whole.size(); at += tests::kThinned) {
    Bytes file = whole;
    file[at] = static_cast<uint8_t>(file[at] ^ (1U << random() % 8));
    if (reference_pixels(file).size() != size_t{96} * 80 * kRgbBytes) continue;
    EntryTable table(1);
    EntryPoints entries = entries_of(table, file);
    for (int part = 0; part < 4; ++part) {
      const Rect region = any_region(size, random);
      CAPTURE(at);
      REQUIRE(pixels_of(decoder, file, region, 1, &entries) == pixels_of(plain, file, region, 1, nullptr));
    }
  }
}

TEST_CASE("points that are wrong are forgotten, and the image is decoded from its start") {
  const Extent size{300, 200};
  const Bytes file = photo(size, 5), other = photo(size, 6, {.quality = 60});
  const auto whole = reference_pixels(file);
  std::mt19937 random(7);
  JpegDecoder decoder;
  // Beside it so much is stepped over that other points are passed.
  const Rect region{140, 100, 20, 60};
  const auto wrong = [&](EntryPoints& right, EntryPoints& of_other, size_t i, int how) {
    EntryPoint point = *right.find(i);
    switch (how) {
      case 0:
        point.bit = (point.bit + 1) % 8;
        break;
      case 1:
        point.predictions[random() % 3] += 1;
        break;
      case 2:
        point.byte += 1;
        break;
      case 3:
        point = unpack((uint64_t{random()} << 32 | random()) & ((uint64_t{1} << 52) - 1));
        break;
      case 4:
        point = *of_other.find(i);
        break;
      default:
        point.byte = (1U << 25) - 1;
        break;
    }
    return point;
  };
  EntryTable right_table(2);
  EntryPoints right = entries_of(right_table, file), of_other = entries_of(right_table, other, 1);
  const Rect bottom{size.width - 1, size.height - 1, 1, 1};
  pixels_of(decoder, file, bottom, 1, &right);
  pixels_of(decoder, other, bottom, 1, &of_other);
  for (int how = 0; how < 6; ++how) {
    for (const int32_t shrink : {1, 2}) {
      CAPTURE(how);
      CAPTURE(shrink);
      EntryTable table(1);
      EntryPoints entries = entries_of(table, file);
      for (size_t i = 0; i < entries.most(); ++i) {
        if (!right.find(i)) continue;
        entries.note(i, entries.most(), i % 2 == 0 ? wrong(right, of_other, i, how) : *right.find(i));
      }
      const Rect shown{region.x / shrink, region.y / shrink, region.width / shrink, region.height / shrink};
      const Bytes expected = pixels_of(decoder, file, shown, shrink, nullptr);
      for (int round = 0; round < 2; ++round) {
        REQUIRE(pixels_of(decoder, file, shown, shrink, &entries) == expected);
      }
      if (how != 5) CHECK(noted(entries) == 0);
      if (shrink == 1) CHECK(expected == cut(whole, size, region));
    }
  }
}

TEST_CASE("a table has its budget, and the first image of a slot keeps it") {
  constexpr uint64_t kBudget = 1 << 20;
  EntryTable table(1 << 20, kBudget);
  EntryPoints first = table.of(3, 1000, 7);
  REQUIRE(first.most() == EntryTable::kFewestPoints);
  const EntryPoint point{17, 3, {1, -2, 3}};
  for (uint64_t number = 0; number < 1 << 17; ++number) {
    EntryPoints entries = table.of(number, 1000 + number, 7);
    if (number != 3) entries.note(number % entries.most(), entries.most(), point);
    if (number == 3) first.note(0, first.most(), point);
  }
  const uint64_t slots = kBudget / (8 * (1 + first.most())), pointers = slots * 8 + 5000;
  CHECK(table.bytes() > kBudget * 99 / 100);
  CHECK(table.bytes() < kBudget + pointers);
  CHECK(first.find(0) == point);
  CHECK(table.of(3 + slots, 1003 + slots, 7).find((3 + slots) % first.most()) == std::nullopt);
  EntryTable few(100);
  CHECK(few.bytes() < 1000);
  EntryPoints entries = few.of(5, 10, 1);
  CHECK(entries.most() == EntryTable::kMostPoints);
  entries.note(1, entries.most(), point);
  CHECK(entries.find(1) == point);
  few.of(5, 10, 2).forget();
  CHECK(entries.find(1) == point);
  entries.forget();
  entries.note(1, entries.most(), point);
  CHECK(entries.find(1) == std::nullopt);
}

TEST_CASE("an image takes memory for as many points as it has") {
  constexpr uint64_t kImages = 2048;
  const EntryPoint point{17, 3, {1, -2, 3}};
  EntryTable table(kImages);
  const uint64_t none = table.bytes();
  for (uint64_t number = 0; number < kImages; ++number) {
    for (size_t i = 0; i < 4; ++i) table.of(number, 1000, 7).note(i, 4, point);
  }
  CHECK(table.bytes() - none == kImages * 8 * (1 + 1 + 4));  // a pointer, a key, and the points
  CHECK(table.of(5, 1000, 7).find(3) == point);
  // Whoever believes that there are more, as of other bytes with the same key, stays inside.
  EntryPoints entries = table.of(5, 1000, 7);
  entries.note(4, 200, point);
  CHECK(noted(entries) == 4);
  EntryTable single(1, 8 * (1 + EntryTable::kFewestPoints));
  single.of(0, 1000, 7).note(0, 200, point);
  CHECK(noted(single.of(0, 1000, 7)) == 1);
  CHECK(single.bytes() < 8 * (1 + EntryTable::kFewestPoints) + 5000);

  const Extent size{96, 96};
  const Bytes file = photo(size, 1, {.across = 2, .down = 2});
  EntryTable small(1);
  EntryPoints of_small = entries_of(small, file);
  JpegDecoder decoder;
  pixels_of(decoder, file, {95, 95, 1, 1}, 1, &of_small);
  CHECK(noted(of_small) == 4);
  CHECK(small.bytes() < 5000);
}

TEST_CASE("threads that decode the same images at once") {
  const Extent size{160, 120};
  std::vector<Bytes> files, wholes;
  for (uint32_t i = 0; i < 4; ++i) {
    files.push_back(photo(size, i));
    wholes.push_back(reference_pixels(files.back()));
  }
  EntryTable table(files.size());
  std::vector<std::thread> threads;
  std::vector<int> bad(4);
  for (size_t t = 0; t < bad.size(); ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<uint32_t>(t));
      JpegDecoder decoder;
      for (int round = 0; round < 40; ++round) {
        const size_t i = random() % files.size();
        const Rect region = any_region(size, random);
        EntryPoints entries = entries_of(table, files[i], i);
        if (pixels_of(decoder, files[i], region, 1, &entries) != cut(wholes[i], size, region)) ++bad[t];
        if (t == 0 && round == 30) entries.forget();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(bad == std::vector<int>(4));
}

}  // namespace
}  // namespace stoker

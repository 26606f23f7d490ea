// Records whose pixels are copied out of a mapped shard: the same as those that are read by position.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/base/random_access_file.h"
#include "core/shards/crc32c.h"
#include "core/sources/record_set.h"
#include "tests/shard.h"

namespace stoker {
namespace {

std::string random_text(std::mt19937& chance, size_t size) {
  std::string text(size, 0);
  for (char& byte : text) byte = static_cast<char>(chance());
  return text;
}

// Payloads that begin with something of any length, then say how long the pixels are.
struct Payload {
  std::string bytes;
  size_t begin;
};

Payload payload(std::mt19937& chance, size_t pixels) {
  const std::string name = random_text(chance, chance() % 600), behind = random_text(chance, chance() % 300);
  const std::string before = "length:" + std::to_string(pixels);
  const std::string bytes = name + before + random_text(chance, pixels) + behind;
  return {bytes, name.size() + before.size()};
}

// Reads the pixels of a record as an engine does; whether they came out of the mapping.
bool check_pixels(const RecordSet& set, uint64_t number, const Payload& payload, size_t pixels,
                  SourceScratch& scratch) {
  const FetchedSample fetched = set.read_unchecked(number, scratch);
  const bool is_mapped = fetched.mapped != nullptr;
  REQUIRE(fetched.bytes.size() == payload.bytes.size());
  REQUIRE(fetched.crc == crc32c(tests::bytes_of(payload.bytes)));
  std::vector<uint8_t> out(pixels);
  const bool good = fetched.copy(fetched.bytes.subspan(payload.begin, pixels), out.data(), scratch.pixels);
  const auto expected = tests::bytes_of(payload.bytes).subspan(payload.begin, pixels);
  REQUIRE((good || is_mapped));  // pixels may be expected at a wrong offset, never in another way
  if (good) REQUIRE(std::ranges::equal(out, expected));
  return is_mapped && good;
}

TEST_CASE("pixels come out of a mapped shard as they are read by position") {
  std::mt19937 chance(17);
  for (const size_t pixels : {size_t{1}, size_t{100}, size_t{12'288}, size_t{70'001}}) {
    std::vector<Payload> payloads;
    std::vector<std::string> bytes;
    for (int i = 0; i < 40; ++i) {
      payloads.push_back(payload(chance, i % 10 == 9 ? pixels / 2 + 1 : pixels));
      bytes.push_back(payloads.back().bytes);
    }
    const tests::Shard shard(bytes);
    const auto set = shard.records();
    SourceScratch scratch;
    int mapped = 0;
    for (int i = 0; i < 400; ++i) {
      const uint64_t number = chance() % payloads.size();
      const size_t size = number % 10 == 9 ? pixels / 2 + 1 : pixels;
      mapped += check_pixels(*set, number, payloads[number], size, scratch) ? 1 : 0;
      const auto whole = set->read(number, PayloadCheck::kOn, scratch);
      REQUIRE(std::ranges::equal(whole, tests::bytes_of(payloads[number].bytes)));
      const auto copied = set->read_pixels(number, scratch);
      REQUIRE(std::ranges::equal(copied, tests::bytes_of(payloads[number].bytes)));
    }
    CHECK(mapped > 150);
  }
}

TEST_CASE("what only looks like the beginning of the pixels is not copied") {
  constexpr size_t kPixels = 12'288;
  std::mt19937 chance(17);
  const std::string mark = "length:" + std::to_string(kPixels);
  const std::string name = random_text(chance, 12'000), pixels = random_text(chance, kPixels);
  const Payload good{name + mark + pixels, name.size() + mark.size()};
  const Payload before{mark + name + mark + pixels, mark.size() + name.size() + mark.size()};
  const Payload at_end{random_text(chance, 300) + name + mark + "pixels", 0};  // too short for them
  const tests::Shard shard({good.bytes, before.bytes, at_end.bytes});
  const auto set = shard.records();
  SourceScratch scratch;
  std::vector<uint8_t> out(kPixels);
  int wrong = 0;
  for (int i = 0; i < 40; ++i) {
    check_pixels(*set, 0, good, kPixels, scratch);
    const PixelsGuess guess = scratch.pixels;
    FetchedSample fetched = set->read_unchecked(1, scratch);
    fetched.crc.reset();
    if (fetched.copy(fetched.bytes.subspan(before.begin, kPixels), out.data(), scratch.pixels)) {
      CHECK(std::ranges::equal(out, tests::bytes_of(pixels)));
    } else {
      ++wrong;
    }
    scratch.pixels = guess;
    fetched = set->read_unchecked(2, scratch);
    CHECK(fetched.mapped == nullptr);
    CHECK(std::ranges::equal(fetched.bytes, tests::bytes_of(at_end.bytes)));
  }
  CHECK(wrong > 20);
}

TEST_CASE("a shard that is cut under its mapping is an error that names the record") {
  std::mt19937 chance(17);
  constexpr size_t kPixels = 12'288;
  std::vector<Payload> payloads;
  std::vector<std::string> bytes;
  for (int i = 0; i < 20; ++i) {
    payloads.push_back(payload(chance, kPixels));
    bytes.push_back(payloads.back().bytes);
  }
  const tests::Shard shard(bytes);
  const auto set = shard.records();
  SourceScratch scratch;
  bool mapped = false;
  for (int i = 0; i < 40; ++i) mapped = check_pixels(*set, 3, payloads[3], kPixels, scratch);
  REQUIRE(mapped);
  // Between finding the pixels and copying them.
  const FetchedSample fetched = set->read_unchecked(10, scratch);
  REQUIRE(fetched.mapped != nullptr);
  const RecordExtent& extent = shard.extents()[10];
  REQUIRE(::truncate(shard.path().c_str(), static_cast<off_t>(extent.offset)) == 0);
  std::vector<uint8_t> out(kPixels);
  CHECK(!fetched.copy(fetched.left, out.data(), scratch.pixels));
  // And before.
  for (int i = 0; i < 40; ++i) {
    try {
      if (i % 2 == 0) {
        set->read_unchecked(15, scratch);
      } else {
        set->read_pixels(15, scratch);
      }
      FAIL("it was read");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kTruncatedShard);
      CHECK(error.where().path == shard.path());
      CHECK(error.where().record == 15);
    }
    CHECK(check_pixels(*set, 3, payloads[3], kPixels, scratch) == (i > 0));  // where nothing was expected
  }
}

TEST_CASE("what was looked up for another set, or for another record, is not read") {
  std::mt19937 chance(17);
  constexpr size_t kPixels = 12'288;
  std::vector<Payload> payloads;
  std::vector<std::string> first, second;
  for (int i = 0; i < 12; ++i) {
    payloads.push_back(payload(chance, kPixels));
    (i < 6 ? first : second).push_back(payloads.back().bytes);
  }
  const tests::Shard shards[] = {tests::Shard(first), tests::Shard(second)};
  const std::shared_ptr<RecordSet> sets[] = {shards[0].records(), shards[1].records()};
  SourceScratch scratch;
  int expected = 0;
  for (int i = 0; i < 400; ++i) {
    sets[chance() % 2]->expect(chance() % 6, scratch);
    expected += scratch.hint.mapped.empty() ? 0 : 1;
    const size_t set = chance() % 2, number = chance() % 6;
    const FetchedSample fetched = sets[set]->read_unchecked(number, scratch);
    const Payload& record = payloads[set * 6 + number];
    REQUIRE(fetched.bytes.size() == record.bytes.size());
    std::vector<uint8_t> out(kPixels);
    const auto part = fetched.bytes.subspan(record.begin, kPixels);
    const bool good = fetched.copy(part, out.data(), scratch.pixels, scratch.hint.mapped);
    REQUIRE((good || fetched.mapped != nullptr));
    if (good) REQUIRE(std::ranges::equal(out, tests::bytes_of(record.bytes).subspan(record.begin, kPixels)));
  }
  CHECK(expected > 300);
}

TEST_CASE("prefetching a record that cannot be read disturbs no other") {
  std::mt19937 chance(17);
  const Payload record = payload(chance, 12'288);
  const tests::Shard shard({record.bytes});
  const auto set = shard.records();
  set->add(shard.path() + "-missing", {{0, 100}});
  set->add_listed({shard.path(), shard.path() + "-missing", 7, 100});
  SourceScratch scratch;
  for (int i = 0; i < 40; ++i) {
    for (uint64_t number = 0; number < 4; ++number) CHECK_NOTHROW(set->expect(number, scratch));
    check_pixels(*set, 0, record, 12'288, scratch);
  }
  CHECK(scratch.mapped.on());
  CHECK_THROWS_AS(set->read(1, PayloadCheck::kOn, scratch), Error);
  CHECK_THROWS_AS(set->read(2, PayloadCheck::kOn, scratch), Error);
}

TEST_CASE("bytes that change under the mapping are noticed") {
  std::mt19937 chance(17);
  const Payload record = payload(chance, 12'288);
  const tests::Shard shard({record.bytes});
  const auto set = shard.records();
  SourceScratch scratch;
  for (int i = 0; i < 40; ++i) check_pixels(*set, 0, record, 12'288, scratch);
  const FetchedSample fetched = set->read_unchecked(0, scratch);
  REQUIRE(fetched.mapped != nullptr);
  {
    std::fstream file(shard.path(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(kFrameHeaderBytes + record.begin + 77));
    file.put(static_cast<char>(record.bytes[record.begin + 77] ^ 1));
  }
  std::vector<uint8_t> out(12'288);
  CHECK(!fetched.copy(fetched.left, out.data(), scratch.pixels));
  CHECK_THROWS_AS(set->read(0, PayloadCheck::kOn, scratch), Error);
  CHECK_THROWS_AS(set->read_pixels(0, scratch), Error);
}

TEST_CASE("what is mostly pixels is read from mapped shards in whole, and longer records by position") {
  std::mt19937 chance(17);
  const std::string small = random_text(chance, 70'001), large = random_text(chance, 1'100'000);
  const tests::Shard shard({small, large, ""});
  const auto set = shard.records();
  SourceScratch scratch;
  const auto checked = [&scratch] { return scratch.clock.totals().of[size_t(Stage::kCheck)].samples; };
  for (int i = 0; i < 50; ++i) {
    for (const auto& [number, bytes] : {std::pair(0U, &small), std::pair(1U, &large)}) {
      const uint64_t before = checked();
      scratch.clock.begin(0, number, true);
      REQUIRE(std::ranges::equal(set->read_pixels(number, scratch), tests::bytes_of(*bytes)));
      scratch.clock.end();
      const bool by_position = checked() != before;  // elsewhere checking and copying are one
      if (i >= 20) CHECK(by_position == (number == 1 || !scratch.mapped.on()));  // files are mapped later
    }
    CHECK(set->read_pixels(2, scratch).empty());
  }
  CHECK(scratch.mapped.on());
}

}  // namespace
}  // namespace stoker

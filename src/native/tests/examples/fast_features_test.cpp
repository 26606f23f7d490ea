#include "core/examples/fast_features.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/examples/example.h"
#include "tests/shard.h"

namespace stoker {
namespace {

using tests::bytes_of;

std::vector<FastFeature> wanted() {
  return {{"image"},
          {"label"},
          {"name"},
          {.key = "image", .list = true},
          {.key = "label", .list = true},
          {.key = "weights", .list = true}};
}

std::string usual() {
  const std::string name = "picture";
  return write_example({{"image", BytesValues{bytes_of(name)}},
                        {"label", Int64Values{300}},
                        {"weights", FloatValues{1.5F, 2.0F}}});
}

// The reader, with which the fast path must agree wherever it succeeds.
void check_against_the_reader(std::span<const uint8_t> payload) {
  std::vector<FastFeature> seen = wanted();
  if (!find_features_fast(payload, seen)) return;
  std::vector<Wanted> read;
  for (const FastFeature& feature : seen) read.push_back({feature.key, {}});
  std::vector<int64_t> unpacked, numbers;
  const auto damaged = [&](const FastFeature& feature) {
    return feature.list && feature.kind == FeatureKind::kInt64 && !unpack(feature.bytes, unpacked);
  };
  if (std::ranges::any_of(seen, damaged)) {
    REQUIRE_THROWS_AS(find_features(payload, read), Error);
    return;
  }
  REQUIRE_NOTHROW(find_features(payload, read));
  for (size_t i = 0; i < seen.size(); ++i) {
    REQUIRE(seen[i].kind == read[i].view.kind());
    if (seen[i].kind == FeatureKind::kNone) continue;
    if (seen[i].list && seen[i].kind == FeatureKind::kInt64) {
      REQUIRE(unpack(seen[i].bytes, unpacked));
      numbers.clear();
      read[i].view.append_to(numbers);
      REQUIRE(unpacked == numbers);
      continue;
    }
    if (seen[i].kind == FeatureKind::kFloat) {
      REQUIRE(seen[i].list);
      std::vector<float> fractions;
      read[i].view.append_to(fractions);
      REQUIRE(seen[i].bytes.size() == fractions.size() * sizeof(float));
      if (!fractions.empty())
        REQUIRE(std::memcmp(seen[i].bytes.data(), fractions.data(), seen[i].bytes.size()) == 0);
      continue;
    }
    REQUIRE(read[i].view.count() == 1);
    if (seen[i].kind == FeatureKind::kInt64) REQUIRE(seen[i].number == read[i].view.first_int64());
    if (seen[i].kind != FeatureKind::kBytes) continue;
    const auto bytes = read[i].view.first_bytes();
    REQUIRE(seen[i].bytes.data() == bytes.data());
    REQUIRE(seen[i].bytes.size() == bytes.size());
  }
}

TEST_CASE("the fast path reads what writers write") {
  const std::string payload = usual();
  std::vector<FastFeature> seen = wanted();
  REQUIRE(find_features_fast(bytes_of(payload), seen));
  CHECK(std::string(seen[0].bytes.begin(), seen[0].bytes.end()) == "picture");
  CHECK(seen[1].number == 300);
  CHECK(seen[2].kind == FeatureKind::kNone);
  CHECK(seen[3].bytes.size() == 7);
  std::vector<int64_t> numbers;
  REQUIRE(unpack(seen[4].bytes, numbers));
  CHECK(numbers == std::vector<int64_t>{300});
  CHECK(seen[5].kind == FeatureKind::kFloat);
  CHECK(seen[5].bytes.size() == 8);
}

TEST_CASE("numbers have 64 bits, alone and in lists") {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
  for (const int64_t number : {int64_t{0}, int64_t{127}, int64_t{128}, int64_t{-1}, kLeast, kMost}) {
    const std::string payload = write_example({{"label", Int64Values{number}}});
    std::vector<FastFeature> seen = wanted();
    REQUIRE(find_features_fast(bytes_of(payload), seen));
    CHECK(seen[1].number == number);
    check_against_the_reader(bytes_of(payload));
  }
  for (const auto& numbers : {Int64Values{}, Int64Values{kLeast, 0, kMost}}) {
    const std::string payload = write_example({{"other", numbers}});
    std::vector<FastFeature> seen{{.key = "other", .list = true}};
    REQUIRE(find_features_fast(bytes_of(payload), seen));
    std::vector<int64_t> unpacked;
    REQUIRE(unpack(seen[0].bytes, unpacked));
    CHECK(unpacked == numbers);
  }
}

TEST_CASE("packed numbers that are cut off or too long are damaged") {
  std::vector<int64_t> numbers;
  const std::vector<uint8_t> cut{1, 0x80}, longer(11, 0x80),
      eleven{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1};
  std::vector<uint8_t> bits65(9, 0xff), bits64(9, 0xff);
  bits65.push_back(2);
  bits64.push_back(1);
  for (const auto& bytes : {cut, longer, eleven, bits65}) CHECK_FALSE(unpack(bytes, numbers));
  REQUIRE(unpack(bits64, numbers));
  CHECK(numbers == std::vector<int64_t>{-1});
}

TEST_CASE("what has no single value of its kind is left to the reader") {
  const std::string a = "a", b = "b";
  for (const auto& label : {Int64Values{}, Int64Values{1, 2}}) {
    const std::string payload = write_example({{"label", label}});
    std::vector<FastFeature> seen = wanted();
    CHECK_FALSE(find_features_fast(bytes_of(payload), seen));
  }
  for (const auto& payload :
       {write_example({{"image", BytesValues{bytes_of(a), bytes_of(b)}}}),
        write_example({{"image", FloatValues{1.0F}}}), std::string(), usual() + usual()}) {
    std::vector<FastFeature> seen = wanted();
    CHECK_FALSE(find_features_fast(bytes_of(payload), seen));
  }
}

TEST_CASE("the fast path and the reader agree about damaged payloads") {
  std::mt19937 random(7);
  const std::string whole = usual();
  for (int round = 0; round < 200'000; ++round) {
    std::string payload = whole;
    for (unsigned changes = 1 + random() % 3; changes != 0; --changes) {
      payload[random() % payload.size()] = static_cast<char>(random() % 2 != 0 ? random() % 32 : random());
    }
    if (random() % 4 == 0) payload.resize(random() % payload.size());
    check_against_the_reader(bytes_of(payload));
  }
}

}  // namespace
}  // namespace stoker

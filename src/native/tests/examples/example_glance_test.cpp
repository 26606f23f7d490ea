#include "core/examples/example_glance.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/examples/example.h"
#include "tests/shard.h"

namespace stoker {
namespace {

using tests::bytes_of;

std::vector<GlancedFeature> wanted() {
  return {{"image"}, {"label"}, {"name"}};
}

std::string usual() {
  const std::string name = "picture";
  return write_example({{"image", BytesValues{bytes_of(name)}},
                        {"label", Int64Values{300}},
                        {"weights", FloatValues{1.5F, 2.0F}}});
}

// What glance() must agree with wherever it says anything.
void check_against_the_reader(std::span<const uint8_t> payload) {
  std::vector<GlancedFeature> seen = wanted();
  if (!glance(payload, seen)) return;
  std::vector<Wanted> read{{"image", {}}, {"label", {}}, {"name", {}}};
  REQUIRE_NOTHROW(find_features(payload, read));
  for (size_t i = 0; i < seen.size(); ++i) {
    REQUIRE(seen[i].kind == read[i].view.kind());
    if (seen[i].kind == FeatureKind::kNone) continue;
    REQUIRE(read[i].view.count() == 1);
    if (seen[i].kind == FeatureKind::kInt64) REQUIRE(seen[i].number == read[i].view.first_int64());
    if (seen[i].kind != FeatureKind::kBytes) continue;
    const auto bytes = read[i].view.first_bytes();
    REQUIRE(seen[i].bytes.data() == bytes.data());
    REQUIRE(seen[i].bytes.size() == bytes.size());
  }
}

TEST_CASE("a glance sees what writers write") {
  const std::string payload = usual();
  std::vector<GlancedFeature> seen = wanted();
  REQUIRE(glance(bytes_of(payload), seen));
  CHECK(std::string(seen[0].bytes.begin(), seen[0].bytes.end()) == "picture");
  CHECK(seen[1].number == 300);
  CHECK(seen[2].kind == FeatureKind::kNone);
}

TEST_CASE("what has no single value of its kind is left to the reader") {
  const std::string a = "a", b = "b";
  for (const auto& label : {Int64Values{}, Int64Values{1, 2}, Int64Values{-1}}) {
    const std::string payload = write_example({{"label", label}});
    std::vector<GlancedFeature> seen = wanted();
    CHECK_FALSE(glance(bytes_of(payload), seen));
  }
  for (const auto& payload :
       {write_example({{"image", BytesValues{bytes_of(a), bytes_of(b)}}}),
        write_example({{"image", FloatValues{1.0F}}}), std::string(), usual() + usual()}) {
    std::vector<GlancedFeature> seen = wanted();
    CHECK_FALSE(glance(bytes_of(payload), seen));
  }
}

TEST_CASE("whatever a glance says of damaged payloads, the reader says too") {
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

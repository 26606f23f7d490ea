#include "core/sources/concatenation.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/examples/example.h"
#include "core/sources/record_source.h"
#include "tests/shard.h"

namespace stoker {
namespace {

const std::vector<uint8_t> kImage{1};

TEST_CASE(
    "the boxes of a record have its labels, or that of the image, and are refused when they do not add up") {
  const auto boxes = [](std::vector<int64_t> labels, std::vector<float> ymax) {
    std::vector<NamedValues> features{{"image", BytesValues{kImage}},
                                      {"b/xmin", FloatValues{std::vector<float>{0.1F, 0.2F}}},
                                      {"b/ymin", FloatValues{std::vector<float>{0.0F, 0.5F}}},
                                      {"b/xmax", FloatValues{std::vector<float>{0.3F, 0.9F}}},
                                      {"b/ymax", FloatValues{ymax}}};
    if (!labels.empty()) features.push_back({"b/label", Int64Values{labels}});
    const tests::Shard shard({write_example(features)});
    RecordKeys keys;
    keys.image = "image";
    keys.box_prefix = std::string("b/");
    const RecordSource source(shard.records(), keys, PayloadCheck::kOn);
    SourceScratch scratch;
    std::vector<LabelledBox> objects;
    source.append_boxes(0, source.fetch(0, scratch), 7, scratch, objects);
    return objects;
  };
  const auto plain = boxes({}, {1.0F, 0.75F});
  REQUIRE(plain.size() == 2);
  CHECK(plain[0].label == 7);
  CHECK(plain[1].box.ymax == 0.75F);
  CHECK(plain[1].box.xmin == 0.2F);
  CHECK(boxes({3, 4}, {1.0F, 1.0F})[1].label == 4);
  CHECK_THROWS_AS(boxes({3}, {1.0F, 1.0F}), Error);
  CHECK_THROWS_AS(boxes({}, {1.0F}), Error);
}

TEST_CASE("sources laid end to end keep their samples, their positions and their classes apart") {
  const auto shard_of = [](int64_t label) {
    return tests::Shard({write_example({{"image", BytesValues{kImage}}, {"label", Int64Values{label}}})});
  };
  const tests::Shard first = shard_of(3), second = shard_of(-1), third = shard_of(3);
  RecordKeys keys;
  keys.image = "image";
  keys.label.key = "label";
  std::vector<SourcePart> parts;
  for (const auto& [shard, offset] : {std::pair{&first, 0}, std::pair{&second, 10}, std::pair{&third, 20}}) {
    parts.push_back({std::make_shared<RecordSource>(shard->records(), keys, PayloadCheck::kOn), offset});
  }
  const Concatenation all(parts);
  REQUIRE(all.size() == 3);
  SourceScratch scratch;
  std::string name;
  const auto label = [&](uint64_t number) {
    return all.describe({number, kWholeImage}, all.fetch(number, scratch), scratch, name).label;
  };
  CHECK(label(0) == 3);
  CHECK(label(1) == -1);
  CHECK(label(2) == 23);
  CHECK(all.where(2).path == third.records()->where(0).path);
  CHECK(all.where(2).record == 0);
  CHECK_THROWS_AS(all.fetch(3, scratch), Error);

  const tests::Shard largest = shard_of(std::numeric_limits<int64_t>::max());
  const auto source = std::make_shared<RecordSource>(largest.records(), keys, PayloadCheck::kOn);
  const Concatenation moved({{source, 1}});
  CHECK_THROWS_AS(moved.describe({0, kWholeImage}, moved.fetch(0, scratch), scratch, name), Error);
}

}  // namespace
}  // namespace stoker

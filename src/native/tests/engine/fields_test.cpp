// Fields of records in batches: columns in the order of the batch, and planes that follow the first image.
#include <doctest/doctest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/engine/engine.h"
#include "core/examples/example.h"
#include "core/png/decoder.h"
#include "core/sources/record_source.h"
#include "core/transforms/transform_decoder.h"
#include "tests/photo.h"
#include "tests/png/png_file.h"
#include "tests/shard.h"
#include "tests/transforms.h"

namespace stoker {
namespace {

using tests::Numbers;

using namespace std::chrono_literals;

using Bytes = std::vector<uint8_t>;

constexpr Extent kOut{16, 12};
constexpr size_t kRecords = 30;
constexpr size_t kOdd = 7;  // the record whose mask has another size, and whose number is missing

Extent size_of(size_t i) {
  return {24 + static_cast<int32_t>(i % 7), 20 + static_cast<int32_t>(i % 3)};
}

Bytes photo(size_t i, int seed = 0) {
  return tests::jpeg(size_of(i), {}, 3, static_cast<int>(i) + seed);
}

Bytes mask(size_t i, int bits = 8) {
  Extent size = size_of(i);
  if (i == kOdd) ++size.width;
  return tests::png({.size = size, .color = PNG_COLOR_TYPE_GRAY, .bits = bits, .seed = static_cast<int>(i)});
}

std::string caption(size_t i) {
  return std::string(i % 5, 'a') + std::to_string(i);
}

class Records {
 public:
  Records() : shard_(payloads()) {}

  std::shared_ptr<const SampleSource> source() const {
    RecordKeys keys;
    keys.image = "image";
    keys.label.key = "label";
    return std::make_shared<RecordSource>(shard_.records(), std::move(keys), PayloadCheck::kOn);
  }

 private:
  static std::vector<std::string> payloads() {
    std::vector<std::string> records;
    for (size_t i = 0; i < kRecords; ++i) {
      const Bytes image = photo(i), right = photo(i, 100), small = mask(i), deep = mask(i, 16);
      const std::string text = caption(i);
      std::vector<NamedValues> features{{"image", BytesValues{image}},
                                        {"label", Int64Values{static_cast<int64_t>(i)}},
                                        {"right", BytesValues{right}},
                                        {"small", BytesValues{small}},
                                        {"deep", BytesValues{deep}},
                                        {"caption", BytesValues{tests::bytes_of(text)}},
                                        {"tags", Int64Values(i % 4, static_cast<int64_t>(i))}};
      if (i != kOdd) features.push_back({"number", FloatValues{static_cast<float>(i)}});
      records.push_back(write_example(std::move(features)));
    }
    return records;
  }

  tests::Shard shard_;
};

const FieldColumn kCaption{.key = "caption", .kind = FeatureKind::kBytes, .text = true};
const FieldColumn kTags{.key = "tags", .kind = FeatureKind::kInt64};
const FieldColumn kNumber{.key = "number", .kind = FeatureKind::kFloat, .fixed = true};

EngineSpec spec(size_t threads, FieldSpec fields) {
  EngineSpec engine;
  engine.transforms = {
      tests::transform("RandomResizedCrop", kOut, {{"hflip", Numbers{0.5}}, {"scale", Numbers{0.3, 1}}})};
  engine.fields = std::move(fields);
  engine.batch_size = 8;
  engine.threads = threads;
  return engine;
}

Batch load(BatchEngine& engine, const std::vector<uint64_t>& numbers, uint64_t epoch = 0) {
  BatchRequest request{.samples = {}, .epoch = epoch};
  for (const uint64_t number : numbers) request.samples.push_back({{number, kWholeImage}, number, number});
  engine.submit(request);
  for (;;) {
    if (auto batch = engine.next(100ms)) return *std::move(batch);
  }
}

std::vector<Bytes> values_of(const BatchColumn& column) {
  std::vector<Bytes> all;
  for (size_t i = 0; i < column.samples(); ++i) all.emplace_back(column.of(i).begin(), column.of(i).end());
  return all;
}

Bytes slot(const std::vector<std::shared_ptr<uint8_t[]>>& images, size_t row, size_t bytes) {
  const uint8_t* first = images[0].get() + row * bytes;
  return {first, first + bytes};
}

TEST_CASE("columns come in the order of the batch, whatever the threads do") {
  const Records records;
  for (const size_t threads : {size_t{1}, size_t{4}}) {
    BatchEngine engine(records.source(), spec(threads, {{kCaption, kTags, kNumber}, {}}));
    for (uint64_t round = 0; round < 10; ++round) {
      std::vector<uint64_t> numbers;
      for (uint64_t i = 0; i < 8; ++i) numbers.push_back(8 + (round * 8 + i) * 13 % 22);
      const Batch batch = load(engine, numbers);
      REQUIRE(batch.failures.empty());
      const GatheredColumn captions = gather(batch.columns[0], 1), tags = gather(batch.columns[1], 8),
                           values = gather(batch.columns[2], 4);
      for (size_t row = 0; row < numbers.size(); ++row) {
        const size_t i = numbers[row];
        const auto begin = captions.offsets[row], end = captions.offsets[row + 1];
        CHECK(std::string(captions.values.get() + begin, captions.values.get() + end) == caption(i));
        CHECK(tags.offsets[row + 1] - tags.offsets[row] == static_cast<int64_t>(i % 4));
        for (int64_t k = tags.offsets[row]; k < tags.offsets[row + 1]; ++k) {
          int64_t tag = 0;
          std::memcpy(&tag, tags.values.get() + k * 8, 8);
          CHECK(tag == static_cast<int64_t>(i));
        }
        float value = 0;
        std::memcpy(&value, values.values.get() + row * 4, 4);
        CHECK(value == static_cast<float>(i));
      }
      CHECK(values.offsets.back() == 8);
    }
  }
}

TEST_CASE("the fields of a sample that stands in for another are its own") {
  const Records records;
  BatchEngine engine(records.source(), spec(3, {{kCaption, kNumber}, {{"small", 8}}}));
  Batch batch = load(engine, {3, kOdd, 4});
  REQUIRE(batch.failures.size() == 1);
  CHECK(batch.failures[0].row == 1);
  try {
    std::rethrow_exception(batch.failures[0].error);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBadExample);
    CHECK(error.where().record == kOdd);
    CHECK(std::string(error.what()).find("feature 'number' is missing") != std::string::npos);
  }
  CHECK_THROWS_AS(engine.replace(batch, 1, {kOdd, kWholeImage}, kOdd), Error);
  engine.replace(batch, 1, {9, kWholeImage}, 9);
  const auto own = batch.columns[0].of(1);
  CHECK(std::string(own.begin(), own.end()) == caption(9));
  BatchRequest same{.samples = {{{9, kWholeImage}, 9, kOdd}}, .epoch = 0};
  engine.submit(same);
  std::optional<Batch> other;
  while (!other) other = engine.next(100ms);
  CHECK(slot(batch.planes[0], 1, 16 * 12) == slot(other->planes[0], 0, 16 * 12));
  CHECK(slot(batch.images, 1, 16 * 12 * 3) == slot(other->images, 0, 16 * 12 * 3));
}

// What is cut out of the whole image, pixel by pixel, by the sums of Pillow's nearest.
Bytes nearest(const Bytes& file, PixelMode mode, const TransformPlan& plan) {
  TransformDecoder decoder(DecodeMode::kExact, nullptr, mode);
  std::vector<uint8_t> whole;
  const Extent size = decoder.decode_whole(file, kDefaultMaxPixels, whole);
  const size_t pixel = pixel_bytes(mode);
  const auto source_position = [&](int32_t in, int32_t out, int32_t at) {
    const double scale = static_cast<double>(in) / out;
    if (mode == PixelMode::kI16) return static_cast<int32_t>(scale * (at + 0.5));
    double sum = scale * 0.5;
    for (int32_t i = 0; i < at; ++i) sum += scale;
    return static_cast<int32_t>(sum);
  };
  Bytes pixels;
  for (int32_t y = 0; y < plan.window.height; ++y) {
    for (int32_t x = 0; x < plan.window.width; ++x) {
      const int32_t column = plan.flip ? plan.window.width - 1 - x : x;
      const int32_t from_x =
          plan.crop.x + source_position(plan.crop.width, plan.resized.width, plan.window.x + column);
      const int32_t from_y =
          plan.crop.y + source_position(plan.crop.height, plan.resized.height, plan.window.y + y);
      const size_t from =
          (static_cast<size_t>(from_y) * static_cast<size_t>(size.width) + static_cast<size_t>(from_x)) *
          pixel;
      pixels.insert(pixels.end(), whole.begin() + static_cast<std::ptrdiff_t>(from),
                    whole.begin() + static_cast<std::ptrdiff_t>(from + pixel));
    }
  }
  return pixels;
}

TEST_CASE("masks are cropped, mirrored and picked as the image, and other images resampled as it") {
  const Records records;
  EngineSpec with = spec(3, {{}, {{"small", 8}, {"deep", 16}, {"right", 0}}});
  const std::pair<const char*, SettingValues> transforms[] = {
      {"RandomResizedCrop", {{"hflip", Numbers{0.5}}, {"scale", Numbers{0.3, 1}}}},
      {"CenterCrop", {{"hflip", Numbers{0.5}}, {"resize", Numbers{18}}}},
      {"TopLeft", {{"hflip", Numbers{0.5}}}}};
  for (const auto& [name, settings] : transforms) {
    with.transforms = {tests::transform(name, kOut, settings, {tests::jitter({0.4})})};
    BatchEngine loads(records.source(), with);
    const Batch batch = load(loads, {1, 2, 3, 8, 29}, 4);
    REQUIRE(batch.failures.empty());
    for (size_t row = 0; row < batch.indices.size(); ++row) {
      const size_t i = batch.indices[row];
      const SampleRandom random(with.seed, 4, i);
      const TransformPlan plan = with.transforms[0].plan(size_of(i), random.in_transform(0));
      CHECK(slot(batch.planes[0], row, 16 * 12) == nearest(mask(i), PixelMode::kL, plan));
      CHECK(slot(batch.planes[1], row, 16 * 12 * 2) == nearest(mask(i, 16), PixelMode::kI16, plan));
      Bytes right(16 * 12 * 3), left(16 * 12 * 3);
      const RgbSlot to_right{right.data(), 16 * 3}, to_left{left.data(), 16 * 3};
      const Bytes first = photo(i), second = photo(i, 100);
      TransformDecoder decoder;
      decoder.decode({.bytes = second}, with.transforms, random, kDefaultMaxPixels, {&to_right, 1});
      decoder.decode({.bytes = first}, with.transforms, random, kDefaultMaxPixels, {&to_left, 1});
      CHECK(slot(batch.planes[2], row, right.size()) == right);
      CHECK(slot(batch.images, row, left.size()) == left);
    }
  }
}

TEST_CASE("an image of another size than the first one is an error of its sample, by name") {
  const Records records;
  BatchEngine engine(records.source(), spec(2, {{}, {{"small", 8}}}));
  const Batch batch = load(engine, {kOdd, 8});
  REQUIRE(batch.failures.size() == 1);
  try {
    std::rethrow_exception(batch.failures[0].error);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBadExample);
    const std::string what = error.what();
    CHECK(what.find("record 7 at byte") != std::string::npos);
    CHECK(what.find("feature 'small': it is 25 x 21 pixels (width x height) and the image 24 x 21") !=
          std::string::npos);
  }
}

TEST_CASE("pixels that are kept bring their fields along") {
  const Records records;
  EngineSpec with = spec(2, {{kCaption}, {{"small", 8}, {"right", 0}}});
  BatchEngine plain(records.source(), with);
  const Batch expected = load(plain, {1, 2, 3}, 1);
  with.decoded = std::make_shared<MemoryCache>(uint64_t{1} << 20);
  BatchEngine cached(records.source(), with);
  for (int round = 0; round < 2; ++round) {
    const Batch batch = load(cached, {1, 2, 3}, 1);
    CHECK(values_of(batch.columns[0]) == values_of(expected.columns[0]));
    CHECK(slot(batch.planes[0], 2, 16 * 12) == slot(expected.planes[0], 2, 16 * 12));
    CHECK(slot(batch.planes[1], 2, 16 * 12 * 3) == slot(expected.planes[1], 2, 16 * 12 * 3));
    CHECK(slot(batch.images, 2, 16 * 12 * 3) == slot(expected.images, 2, 16 * 12 * 3));
  }
  CHECK(with.decoded->counts().hits == 3);
}

}  // namespace
}  // namespace stoker

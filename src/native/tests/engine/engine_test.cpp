#include "core/engine/engine.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/examples/example.h"
#include "core/sources/record_source.h"
#include "core/transforms/transform_decoder.h"
#include "tests/photo.h"
#include "tests/shard.h"
#include "tests/transforms.h"

namespace stoker {
namespace {

using tests::Numbers;

using namespace std::chrono_literals;

std::string example(size_t i, std::vector<uint8_t> image) {
  const std::string name = "picture-" + std::to_string(i) + ".jpg";
  return write_example({{"image", BytesValues{image}},
                        {"label", Int64Values{static_cast<int64_t>(i)}},
                        {"name", BytesValues{tests::bytes_of(name)}}});
}

// Small pictures; that of record `bad` is cut short, and what record `odd` holds is not a JPEG.
class TinyShard {
 public:
  explicit TinyShard(size_t records, size_t bad = SIZE_MAX, size_t odd = SIZE_MAX)
      : shard_(payloads(records, bad, odd)) {}

  std::shared_ptr<RecordSet> records() const { return shard_.records(); }

  std::shared_ptr<const SampleSource> source() const {
    RecordKeys keys;
    keys.image = "image";
    keys.label.key = "label";
    keys.source = "name";
    return std::make_shared<RecordSource>(records(), std::move(keys), PayloadCheck::kOn);
  }

 private:
  static std::vector<std::string> payloads(size_t records, size_t bad, size_t odd) {
    std::vector<std::string> examples;
    for (size_t i = 0; i < records; ++i) {
      auto image = tests::jpeg({24 + static_cast<int32_t>(i % 7), 20}, {}, 3, static_cast<int>(i));
      if (i == bad) image.resize(image.size() / 2);
      examples.push_back(example(i, i == odd ? std::vector<uint8_t>{'P', 'N', 'G'} : image));
    }
    return examples;
  }

  tests::Shard shard_;
};

EngineSpec spec(size_t threads) {
  EngineSpec engine;
  engine.transforms = {tests::transform("RandomResizedCrop", {16, 12}, {{"hflip", Numbers{0.5}}})};
  engine.batch_size = 8;
  engine.threads = threads;
  return engine;
}

BatchRequest request(const std::vector<uint64_t>& numbers, uint64_t epoch = 0,
                     const std::vector<uint64_t>& streams = {}) {
  BatchRequest batch{.samples = {}, .epoch = epoch};
  for (size_t i = 0; i < numbers.size(); ++i) {
    batch.samples.push_back(
        {{numbers[i], kWholeImage}, numbers[i], streams.empty() ? numbers[i] : streams[i]});
  }
  return batch;
}

Batch wait_for_any(BatchEngine& engine) {
  for (;;) {
    if (auto batch = engine.next(100ms)) return *std::move(batch);
  }
}

// As a consumer that accepts no failure.
Batch wait(BatchEngine& engine) {
  Batch batch = wait_for_any(engine);
  if (!batch.failures.empty()) std::rethrow_exception(batch.failures.front().error);
  return batch;
}

std::vector<std::vector<uint8_t>> run(const TinyShard& shard, size_t threads, size_t ahead) {
  BatchEngine engine(shard.source(), spec(threads));
  std::vector<std::vector<uint8_t>> pixels;
  size_t submitted = 0;
  for (size_t taken = 0; taken < 10; ++taken) {
    for (; submitted < 10 && submitted < taken + ahead; ++submitted) {
      std::vector<uint64_t> keys;
      for (uint64_t i = 0; i < 8; ++i) keys.push_back((submitted * 8 + i) * 13 % 40);
      engine.submit(request(keys, submitted));
    }
    const Batch batch = wait(engine);
    for (size_t i = 0; i < batch.indices.size(); ++i)
      REQUIRE(batch.labels[i] == static_cast<int64_t>(batch.indices[i]));
    pixels.emplace_back(batch.images[0].get(), batch.images[0].get() + batch.indices.size() * 16 * 12 * 3);
  }
  return pixels;
}

TEST_CASE("threads and prefetch change neither pixels nor order") {
  const TinyShard shard(40);
  const auto expected = run(shard, 1, 1);
  CHECK(run(shard, 2, 1) == expected);
  CHECK(run(shard, 3, 4) == expected);
  CHECK(run(shard, 8, 10) == expected);
}

// Raw images of 8 x 8, which threads copy several at a time; that of record `bad` lacks a byte.
class RawShard {
 public:
  static constexpr size_t kPixels = 8 * 8 * 3;

  explicit RawShard(size_t records, size_t bad = SIZE_MAX) : shard_(payloads(records, bad)) {}

  std::shared_ptr<const SampleSource> source() const {
    RecordKeys keys;
    keys.image = "image";
    keys.label.key = "label";
    keys.encoding = ImageEncoding::kRaw;
    keys.height = keys.width = "side";
    return std::make_shared<RecordSource>(shard_.records(), std::move(keys), PayloadCheck::kOn);
  }

  static std::vector<uint8_t> pixels(size_t record) {
    std::vector<uint8_t> values(kPixels);
    for (size_t i = 0; i < kPixels; ++i) values[i] = static_cast<uint8_t>(record * 31 + i * i);
    return values;
  }

 private:
  static std::vector<std::string> payloads(size_t records, size_t bad) {
    std::vector<std::string> examples;
    for (size_t i = 0; i < records; ++i) {
      std::vector<uint8_t> image = pixels(i);
      if (i == bad) image.pop_back();
      examples.push_back(write_example({{"image", BytesValues{image}},
                                        {"label", Int64Values{static_cast<int64_t>(i)}},
                                        {"side", Int64Values{8}}}));
    }
    return examples;
  }

  tests::Shard shard_;
};

EngineSpec raw_spec(size_t threads) {
  EngineSpec engine;
  engine.transforms = {tests::transform("RawTensor", {8, 8})};
  engine.batch_size = 150;
  engine.threads = threads;
  return engine;
}

TEST_CASE("raw images go into the batch as they are, however many threads copy how many at a time") {
  const RawShard shard(400);
  for (const size_t threads : {1, 2, 3, 7}) {
    BatchEngine engine(shard.source(), raw_spec(threads));
    const std::vector<size_t> sizes{150, 1, 7, 149, 150, 16, 63, 150, 100, 150};
    std::vector<std::vector<uint64_t>> numbers;
    for (const size_t size : sizes) {
      numbers.emplace_back();
      for (uint64_t i = 0; i < size; ++i) numbers.back().push_back((i * 7 + numbers.size() * 13) % 400);
      engine.submit(request(numbers.back()));
    }
    for (const std::vector<uint64_t>& expected : numbers) {
      const Batch batch = wait(engine);
      REQUIRE(batch.indices == expected);
      for (size_t i = 0; i < expected.size(); ++i) {
        REQUIRE(batch.labels[i] == static_cast<int64_t>(expected[i]));
        const uint8_t* at = batch.images[0].get() + i * RawShard::kPixels;
        REQUIRE(std::vector<uint8_t>(at, at + RawShard::kPixels) == RawShard::pixels(expected[i]));
      }
    }
  }
}

TEST_CASE("a bad raw image fails alone among those that a thread copies with it") {
  const RawShard shard(400, 77);
  BatchEngine engine(shard.source(), raw_spec(2));
  std::vector<uint64_t> numbers(150);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
  for (int round = 0; round < 5; ++round) engine.submit(request(numbers));
  for (int round = 0; round < 5; ++round) {
    const Batch batch = wait_for_any(engine);
    REQUIRE(batch.failures.size() == 1);
    CHECK(batch.failures[0].row == 77);
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (i != 77) REQUIRE(batch.labels[i] == static_cast<int64_t>(i));
    }
  }
}

TEST_CASE("an engine that copies several images at a time can be left at any moment") {
  const RawShard shard(400);
  std::vector<uint64_t> numbers(150, 3);
  for (int round = 0; round < 30; ++round) {
    BatchEngine engine(shard.source(), raw_spec(3));
    for (int k = 0; k < 8; ++k) engine.submit(request(numbers));
    if (round % 3 == 0) engine.drop_pending();
    if (round % 3 == 1) CHECK(wait(engine).labels[149] == 3);
    if (round % 2 == 0) engine.close();
  }
}

TEST_CASE("a bad sample fails its own batch, by name, and no other") {
  const TinyShard shard(40, 21);
  BatchEngine engine(shard.source(), spec(3));
  for (uint64_t first : {0, 8, 16, 24, 32}) {
    engine.submit(
        request({first, first + 1, first + 2, first + 3, first + 4, first + 5, first + 6, first + 7}));
  }
  for (int batch = 0; batch < 5; ++batch) {
    if (batch != 2) {
      CHECK(wait(engine).indices.size() == 8);
      continue;
    }
    try {
      wait(engine);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kBadImage);
      CHECK(error.where().record == 21);
      CHECK(error.where().source == "picture-21.jpg");
      CHECK(std::string(error.what()).find("record 21 at byte") != std::string::npos);
    }
  }
}

TEST_CASE("of several bad samples the first in batch order is reported") {
  const TinyShard shard(40, 21);
  for (int round = 0; round < 20; ++round) {
    BatchEngine engine(shard.source(), spec(4));
    engine.submit(request({1, 21, 999, 2, 3, 4, 5, 6}));
    try {
      wait(engine);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.where().record == 21);
    }
  }
}

TEST_CASE("an engine can be left, closed and dropped at any moment") {
  const TinyShard shard(40);
  for (int round = 0; round < 30; ++round) {
    BatchEngine engine(shard.source(), spec(3));
    for (uint64_t i = 0; i < 20; ++i) engine.submit(request({i, i + 1, i + 2}, i));
    if (round % 3 == 0) wait(engine);
    if (round % 3 == 1) {
      engine.drop_pending();
      engine.submit(request({7}));
      CHECK(wait(engine).indices.front() == 7);
    }
    if (round % 2 == 0) engine.close();
    if (round % 2 == 0) CHECK_THROWS_AS(engine.next(1ms), Error);
  }
}

// What an engine of `mode` shows of records, in its own whole numbers.
std::vector<uint8_t> shown(const TinyShard& shard, PixelMode mode, std::shared_ptr<MemoryCache> decoded,
                           ConvertImage convert = {}) {
  EngineSpec engine = spec(2);
  engine.mode = mode;
  engine.decoded = std::move(decoded);
  engine.convert = std::move(convert);
  if (mode == PixelMode::kI16) engine.format.type = PixelType::kUint16;
  BatchEngine running(shard.source(), engine);
  running.submit(request({1, 2, 3, 4}));
  const Batch batch = wait(running);
  return {batch.images[0].get(), batch.images[0].get() + 4 * 16 * 12 * pixel_bytes(mode)};
}

TEST_CASE("engines of different modes may have a cache of decoded images in common") {
  const TinyShard shard(10);
  const auto cache = std::make_shared<MemoryCache>(uint64_t{1} << 20);
  const PixelMode modes[] = {PixelMode::kRgb, PixelMode::kL, PixelMode::kRgba, PixelMode::kI16};
  for (int round = 0; round < 2; ++round) {
    for (const PixelMode mode : modes) CHECK(shown(shard, mode, cache) == shown(shard, mode, nullptr));
    CHECK(cache->counts().hits == static_cast<uint64_t>(round) * 16);
  }
}

TEST_CASE("what a converter gives has the mode of the engine") {
  const TinyShard shard(10, SIZE_MAX, 2);
  for (const PixelMode mode : {PixelMode::kRgb, PixelMode::kL, PixelMode::kRgba, PixelMode::kI16}) {
    const size_t bytes = 20 * 14 * pixel_bytes(mode);
    const auto cache = std::make_shared<MemoryCache>(uint64_t{1} << 20);
    const auto flat = [&](std::span<const uint8_t>) {
      return ConvertedImage{std::vector<uint8_t>(bytes, 255), {20, 14}};
    };
    for (int round = 0; round < 2; ++round) {
      const auto pixels = shown(shard, mode, cache, flat);
      const size_t sample = 16 * 12 * pixel_bytes(mode);
      for (size_t i = sample; i < 2 * sample; ++i) REQUIRE(pixels[i] == 255);
    }
    const auto short_of = [&](std::span<const uint8_t>) {
      return ConvertedImage{std::vector<uint8_t>(bytes - 1, 255), {20, 14}};
    };
    CHECK_THROWS_AS(shown(shard, mode, nullptr, short_of), Error);
  }
}

TEST_CASE("a batch outlives its engine") {
  const TinyShard shard(10);
  Batch batch;
  {
    BatchEngine engine(shard.source(), spec(2));
    engine.submit(request({1, 2, 3}));
    batch = wait(engine);
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < 3 * 16 * 12 * 3; ++i) sum += batch.images[0][i];
  CHECK(sum > 0);
}

std::vector<uint8_t> pixels_of(const Batch& batch) {
  return {batch.images[0].get(), batch.images[0].get() + batch.indices.size() * 16 * 12 * 3};
}

TEST_CASE("random choices depend on the stream, and indices are only reported") {
  const TinyShard shard(40);
  BatchEngine engine(shard.source(), spec(2));
  engine.submit(request({5, 6}));
  engine.submit({{{{5, kWholeImage}, 50, 5}, {{6, kWholeImage}, 60, 6}}, 0});
  engine.submit(request({5, 6}, 0, {500, 600}));
  const Batch plain = wait(engine), same = wait(engine), other = wait(engine);
  CHECK(pixels_of(plain) == pixels_of(same));
  CHECK(plain.seeds == same.seeds);
  CHECK(same.indices == std::vector<uint64_t>{50, 60});
  CHECK(pixels_of(plain) != pixels_of(other));
  CHECK(plain.seeds != other.seeds);
  CHECK(other.labels == std::vector<int64_t>{5, 6});
}

TEST_CASE("an empty batch is refused, and one that is too large") {
  const TinyShard shard(10);
  BatchEngine engine(shard.source(), spec(1));
  CHECK_THROWS_AS(engine.submit(request({})), Error);
  CHECK_THROWS_AS(engine.submit(request({1, 2, 3, 4, 5, 6, 7, 8, 9})), Error);
}

TEST_CASE("an object in a transform of whole images is an error of that sample") {
  const TinyShard shard(10);
  BatchEngine engine(shard.source(), spec(2));
  engine.submit({{{{1, kWholeImage}, 1, 1}, {{2, 0}, 2, 2}}, 0});
  CHECK_THROWS_AS(wait(engine), Error);
}

TEST_CASE("an object has the label of its box, and a whole image its own") {
  const auto image = tests::jpeg({24, 20}, {}, 3, 1);
  const FloatValues low{0, 0.5F}, high{0.5F, 1};
  const tests::Shard shard({write_example({{"image", BytesValues{image}},
                                           {"label", Int64Values{7}},
                                           {"bbox/xmin", low},
                                           {"bbox/ymin", low},
                                           {"bbox/xmax", high},
                                           {"bbox/ymax", high},
                                           {"bbox/label", Int64Values{4, 5}}})});
  RecordKeys keys;
  keys.image = "image";
  keys.label.key = "label";
  keys.box_prefix = "bbox/";
  EngineSpec crops = spec(2);
  crops.transforms = {tests::transform("ObjectCrops", {8, 8})};
  BatchEngine engine(std::make_shared<RecordSource>(shard.records(), keys, PayloadCheck::kOn), crops);
  engine.submit({{{{0, 1}, 0, 0}, {{0, kWholeImage}, 1, 1}, {{0, 0}, 2, 2}}, 0});
  CHECK(wait(engine).labels == std::vector<int64_t>{5, 7, 4});
}

TEST_CASE("all failures of a batch are listed in batch order, and samples can be replaced") {
  const TinyShard shard(40, 21);
  BatchEngine reference(shard.source(), spec(1));
  reference.submit(request({1, 8, 2, 9, 3}, 4, {1, 21, 2, 999, 3}));
  const auto expected = wait(reference);
  for (int round = 0; round < 20; ++round) {
    BatchEngine engine(shard.source(), spec(4));
    engine.submit(request({1, 21, 2, 999, 3}, 4));
    Batch batch = wait_for_any(engine);
    REQUIRE(batch.failures.size() == 2);
    CHECK(batch.failures[0].row == 1);
    CHECK(batch.failures[1].row == 3);
    CHECK_THROWS_AS(engine.replace(batch, 1, {21, kWholeImage}, 21), Error);
    engine.replace(batch, 1, {8, kWholeImage}, 8);
    engine.replace(batch, 3, {9, kWholeImage}, 9);
    CHECK(pixels_of(batch) == pixels_of(expected));
    CHECK(batch.indices == std::vector<uint64_t>{1, 8, 2, 9, 3});
    CHECK(batch.labels == expected.labels);
    CHECK(batch.seeds == expected.seeds);
  }
}

TEST_CASE("several transforms of one decode are those that each would be alone, with choices of their own") {
  const TinyShard shard(40);
  EngineSpec several = spec(3);
  const TransformSpec crop = several.transforms[0];
  const TransformSpec center = tests::transform("CenterCrop", {9, 9}, {{"resize", Numbers{10}}});
  several.transforms = {crop, center, crop};
  BatchEngine engine(shard.source(), several);
  engine.submit(request({3, 4, 5}, 2));
  const Batch batch = wait(engine);
  REQUIRE(batch.images.size() == 3);
  const auto transform = [&](size_t i, size_t bytes) {
    return std::vector<uint8_t>(batch.images[i].get(), batch.images[i].get() + 3 * bytes * 3);
  };
  BatchEngine alone(shard.source(), spec(1));
  alone.submit(request({3, 4, 5}, 2));
  CHECK(transform(0, 16 * 12) == pixels_of(wait(alone)));
  CHECK(transform(2, 16 * 12) != transform(0, 16 * 12));
  EngineSpec other = spec(1);
  other.transforms = {center};
  BatchEngine plain(shard.source(), other);
  plain.submit(request({3, 4, 5}, 2));
  const Batch centers = wait(plain);
  CHECK(transform(1, 9 * 9) ==
        std::vector<uint8_t>(centers.images[0].get(), centers.images[0].get() + 3 * 9 * 9 * 3));
}

TEST_CASE(
    "an image of a format that the core does not decode goes through the converter, and its errors are "
    "located") {
  const TinyShard shard(40, SIZE_MAX, 7);
  for (int round = 0; round < 10; ++round) {
    EngineSpec with = spec(4);
    std::atomic<int> calls{0};
    with.convert = [&](std::span<const uint8_t>) -> ConvertedImage {
      ++calls;
      throw Error(ErrorCode::kCallback, "no");
    };
    BatchEngine engine(shard.source(), with);
    engine.submit(request({1, 2, 3}));
    engine.submit(request({6, 7, 8}));
    engine.submit(request({7}));
    CHECK(wait(engine).indices.size() == 3);
    try {
      wait(engine);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kCallback);
      CHECK(error.where().record == 7);
      CHECK(error.where().source == "picture-7.jpg");
    }
    engine.close();
    CHECK(calls <= 2);
  }
}

TEST_CASE("what the converter gives is what is shown") {
  const TinyShard shard(10, SIZE_MAX, 7);
  EngineSpec with = spec(3);
  with.transforms = {tests::transform("TopLeft", {16, 12}, {{"hflip", Numbers{0.5}}})};
  const auto picture = tests::jpeg({30, 30}, {}, 3, 5);
  ConvertedImage given;
  given.size = TransformDecoder().decode_whole(picture, kDefaultMaxPixels, given.pixels);
  with.convert = [&](std::span<const uint8_t> image) {
    CHECK(image.size() == 3);
    return given;
  };
  BatchEngine engine(shard.source(), with);
  engine.submit(request({7, 6}));
  const tests::Shard converted({example(0, picture)});
  RecordKeys keys;
  keys.image = "image";
  EngineSpec without = spec(1);
  without.transforms = with.transforms;
  BatchEngine plain(std::make_shared<RecordSource>(converted.records(), keys, PayloadCheck::kOn), without);
  plain.submit(request({0}, 0, {7}));
  const auto expected = pixels_of(wait(plain));
  auto seen = pixels_of(wait(engine));
  seen.resize(expected.size());
  CHECK(seen == expected);
}

TEST_CASE("a file that was cut after it was opened is an error") {
  const TinyShard shard(10);
  const auto records = shard.records();
  SourceScratch scratch;
  records->read(0, PayloadCheck::kOn, scratch);
  REQUIRE(truncate(records->where(9).path.c_str(), static_cast<off_t>(records->where(9).offset) + 5) == 0);
  try {
    records->read(9, PayloadCheck::kOn, scratch);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kTruncatedShard);
    CHECK(error.where().record == 9);
  }
}

}  // namespace
}  // namespace stoker

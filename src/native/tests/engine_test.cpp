#include "core/engine.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/example.h"
#include "core/record_source.h"
#include "tests/photo.h"
#include "tests/shard.h"

namespace stoker {
namespace {

using namespace std::chrono_literals;

std::string example(size_t i, std::vector<uint8_t> image) {
  const std::string name = "picture-" + std::to_string(i) + ".jpg";
  return write_example({{"image", BytesValues{image}},
                        {"label", Int64Values{static_cast<int64_t>(i)}},
                        {"name", BytesValues{tests::bytes_of(name)}}});
}

// Small pictures; that of record `bad` is cut short, and what record `odd` holds is no JPEG.
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
    std::vector<std::string> made;
    for (size_t i = 0; i < records; ++i) {
      auto image = tests::jpeg({24 + static_cast<int32_t>(i % 7), 20}, {}, 3, static_cast<int>(i));
      if (i == bad) image.resize(image.size() / 2);
      made.push_back(example(i, i == odd ? std::vector<uint8_t>{'P', 'N', 'G'} : image));
    }
    return made;
  }

  tests::Shard shard_;
};

EngineSpec spec(size_t threads) {
  EngineSpec engine;
  engine.view.kind = ViewKind::kRandomResizedCrop;
  engine.view.out = {16, 12};
  engine.view.hflip = 0.5;
  engine.view.log_ratio_min = -0.2;
  engine.view.log_ratio_max = 0.2;
  engine.batch_size = 8;
  engine.threads = threads;
  return engine;
}

Batch wait(BatchEngine& engine) {
  for (;;) {
    if (auto batch = engine.next(100ms)) return *std::move(batch);
  }
}

std::vector<std::vector<uint8_t>> run(const TinyShard& shard, size_t threads, size_t ahead) {
  BatchEngine engine(shard.source(), spec(threads));
  std::vector<std::vector<uint8_t>> pixels;
  size_t submitted = 0;
  for (size_t taken = 0; taken < 10; ++taken) {
    for (; submitted < 10 && submitted < taken + ahead; ++submitted) {
      std::vector<uint64_t> keys;
      for (uint64_t i = 0; i < 8; ++i) keys.push_back((submitted * 8 + i) * 13 % 40);
      engine.submit({keys, {}, {}, submitted});
    }
    const Batch batch = wait(engine);
    for (size_t i = 0; i < batch.keys.size(); ++i)
      REQUIRE(batch.labels[i] == static_cast<int64_t>(batch.keys[i]));
    pixels.emplace_back(batch.images.get(), batch.images.get() + batch.keys.size() * 16 * 12 * 3);
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

TEST_CASE("a bad sample fails its own batch, by name, and no other") {
  const TinyShard shard(40, 21);
  BatchEngine engine(shard.source(), spec(3));
  for (uint64_t first : {0, 8, 16, 24, 32}) {
    engine.submit(
        {{first, first + 1, first + 2, first + 3, first + 4, first + 5, first + 6, first + 7}, {}, {}, 0});
  }
  for (int batch = 0; batch < 5; ++batch) {
    if (batch != 2) {
      CHECK(wait(engine).keys.size() == 8);
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
    engine.submit({{1, 21, 999, 2, 3, 4, 5, 6}, {}, {}, 0});
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
    for (uint64_t i = 0; i < 20; ++i) engine.submit({{i, i + 1, i + 2}, {}, {}, i});
    if (round % 3 == 0) wait(engine);
    if (round % 3 == 1) {
      engine.drop_pending();
      engine.submit({{7}, {}, {}, 0});
      CHECK(wait(engine).keys.front() == 7);
    }
    if (round % 2 == 0) engine.close();
    if (round % 2 == 0) CHECK_THROWS_AS(engine.next(1ms), Error);
  }
}

TEST_CASE("a batch outlives its engine") {
  const TinyShard shard(10);
  Batch batch;
  {
    BatchEngine engine(shard.source(), spec(2));
    engine.submit({{1, 2, 3}, {}, {}, 0});
    batch = wait(engine);
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < 3 * 16 * 12 * 3; ++i) sum += batch.images[i];
  CHECK(sum > 0);
}

std::vector<uint8_t> pixels_of(const Batch& batch) {
  return {batch.images.get(), batch.images.get() + batch.keys.size() * 16 * 12 * 3};
}

TEST_CASE("numbers are reported instead of keys, and decide the random choices") {
  const TinyShard shard(40);
  BatchEngine engine(shard.source(), spec(2));
  engine.submit({{5, 6}, {}, {}, 0});
  engine.submit({{5, 6}, {}, {5, 6}, 0});
  engine.submit({{5, 6}, {}, {500, 600}, 0});
  const Batch plain = wait(engine), same = wait(engine), other = wait(engine);
  CHECK(pixels_of(plain) == pixels_of(same));
  CHECK(pixels_of(plain) != pixels_of(other));
  CHECK(other.keys == std::vector<uint64_t>{500, 600});
  CHECK(other.labels == std::vector<int64_t>{5, 6});
}

TEST_CASE("columns of a batch that differ in length are refused") {
  const TinyShard shard(10);
  BatchEngine engine(shard.source(), spec(1));
  CHECK_THROWS_AS(engine.submit({{}, {}, {}, 0}), Error);
  CHECK_THROWS_AS(engine.submit({{1, 2}, {0}, {}, 0}), Error);
  CHECK_THROWS_AS(engine.submit({{1, 2}, {}, {1, 2, 3}, 0}), Error);
}

TEST_CASE("an object in a view of whole images is an error of that sample") {
  const TinyShard shard(10);
  BatchEngine engine(shard.source(), spec(2));
  engine.submit({{1, 2}, {-1, 0}, {}, 0});
  CHECK_THROWS_AS(wait(engine), Error);
}

TEST_CASE("an image that is no JPEG goes through the converter, and its errors are located") {
  const TinyShard shard(40, SIZE_MAX, 7);
  for (int round = 0; round < 10; ++round) {
    EngineSpec with = spec(4);
    std::atomic<int> calls{0};
    with.convert = [&](std::span<const uint8_t>) -> std::vector<uint8_t> {
      ++calls;
      throw Error(ErrorCode::kCallback, "no");
    };
    BatchEngine engine(shard.source(), with);
    engine.submit({{1, 2, 3}, {}, {}, 0});
    engine.submit({{6, 7, 8}, {}, {}, 0});
    engine.submit({{7}, {}, {}, 0});
    CHECK(wait(engine).keys.size() == 3);
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

TEST_CASE("what the converter gives is decoded") {
  const TinyShard shard(10, SIZE_MAX, 7);
  EngineSpec with = spec(3);
  with.view.kind = ViewKind::kTopLeft;
  const auto picture = tests::jpeg({30, 30}, {}, 3, 5);
  with.convert = [&](std::span<const uint8_t> image) {
    CHECK(image.size() == 3);
    return picture;
  };
  BatchEngine engine(shard.source(), with);
  engine.submit({{7, 6}, {}, {}, 0});
  const tests::Shard converted({example(0, picture)});
  RecordKeys keys;
  keys.image = "image";
  EngineSpec without = spec(1);
  without.view = with.view;
  BatchEngine plain(std::make_shared<RecordSource>(converted.records(), keys, PayloadCheck::kOn), without);
  plain.submit({{0}, {}, {7}, 0});
  const auto expected = pixels_of(wait(plain));
  auto seen = pixels_of(wait(engine));
  seen.resize(expected.size());
  CHECK(seen == expected);
}

TEST_CASE("a file that was cut after it was opened is an error") {
  const TinyShard shard(10);
  const auto records = shard.records();
  std::vector<uint8_t> buffer;
  records->read(0, PayloadCheck::kOn, buffer);
  REQUIRE(truncate(records->where(9).path.c_str(), static_cast<off_t>(records->where(9).offset) + 5) == 0);
  try {
    records->read(9, PayloadCheck::kOn, buffer);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kTruncatedShard);
    CHECK(error.where().record == 9);
  }
}

}  // namespace
}  // namespace stoker

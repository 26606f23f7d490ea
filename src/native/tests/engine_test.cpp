#include "core/engine.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/example.h"
#include "tests/photo.h"

namespace stoker {
namespace {

using namespace std::chrono_literals;

// A shard of small pictures in a temporary file.
class TinyShard {
 public:
  explicit TinyShard(size_t records, size_t bad = SIZE_MAX) {
    path_ = (std::filesystem::temp_directory_path() / "stoker-engine-XXXXXX").string();
    const int descriptor = mkstemp(path_.data());
    REQUIRE(descriptor >= 0);
    ::close(descriptor);
    std::ofstream file(path_, std::ios::binary);
    uint64_t offset = 0;
    for (size_t i = 0; i < records; ++i) {
      const std::string payload = example(i, i == bad);
      std::vector<uint8_t> frame(payload.size() + kFrameBytes);
      write_frame({reinterpret_cast<const uint8_t*>(payload.data()), payload.size()}, frame);
      file.write(reinterpret_cast<const char*>(frame.data()), static_cast<std::streamsize>(frame.size()));
      extents_.push_back({offset, frame.size()});
      offset += frame.size();
    }
  }
  ~TinyShard() { std::remove(path_.c_str()); }

  std::shared_ptr<RecordSet> records() const {
    auto set = std::make_shared<RecordSet>();
    set->add(path_, extents_);
    return set;
  }

 private:
  static std::string example(size_t i, bool bad) {
    auto image = tests::jpeg({24 + static_cast<int32_t>(i % 7), 20}, {}, 3, static_cast<int>(i));
    if (bad) image.resize(image.size() / 2);
    const std::string name = "picture-" + std::to_string(i) + ".jpg";
    const std::span<const uint8_t> name_bytes{reinterpret_cast<const uint8_t*>(name.data()), name.size()};
    return write_example({{"image", BytesValues{image}},
                          {"label", Int64Values{static_cast<int64_t>(i)}},
                          {"name", BytesValues{name_bytes}}});
  }

  std::string path_;
  std::vector<RecordExtent> extents_;
};

EngineSpec spec(size_t threads) {
  EngineSpec engine;
  engine.view.kind = ViewKind::kRandomResizedCrop;
  engine.view.out = {16, 12};
  engine.view.hflip = 0.5;
  engine.view.log_ratio_min = -0.2;
  engine.view.log_ratio_max = 0.2;
  engine.image_key = "image";
  engine.label_key = "label";
  engine.source_key = "name";
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
  BatchEngine engine(shard.records(), spec(threads));
  std::vector<std::vector<uint8_t>> pixels;
  size_t submitted = 0;
  for (size_t taken = 0; taken < 10; ++taken) {
    for (; submitted < 10 && submitted < taken + ahead; ++submitted) {
      std::vector<uint64_t> keys;
      for (uint64_t i = 0; i < 8; ++i) keys.push_back((submitted * 8 + i) * 13 % 40);
      engine.submit(keys, submitted);
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
  BatchEngine engine(shard.records(), spec(3));
  for (uint64_t first : {0, 8, 16, 24, 32}) {
    engine.submit({first, first + 1, first + 2, first + 3, first + 4, first + 5, first + 6, first + 7}, 0);
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
    BatchEngine engine(shard.records(), spec(4));
    engine.submit({1, 21, 999, 2, 3, 4, 5, 6}, 0);
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
    BatchEngine engine(shard.records(), spec(3));
    for (uint64_t i = 0; i < 20; ++i) engine.submit({i, i + 1, i + 2}, i);
    if (round % 3 == 0) wait(engine);
    if (round % 3 == 1) {
      engine.drop_pending();
      engine.submit({7}, 0);
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
    BatchEngine engine(shard.records(), spec(2));
    engine.submit({1, 2, 3}, 0);
    batch = wait(engine);
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < 3 * 16 * 12 * 3; ++i) sum += batch.images[i];
  CHECK(sum > 0);
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

#include "core/engine/look_ahead.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <thread>

#include "core/base/errors.h"
#include "core/engine/engine.h"
#include "tests/transforms.h"

namespace stoker {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kSlow = 10'000'000;  // nanoseconds of a read
constexpr uint64_t kQuick = 2'000;

template <typename Condition>
void wait_until(const Condition& holds) {
  const auto limit = std::chrono::steady_clock::now() + 60s;
  while (!holds() && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(1ms);
  REQUIRE(holds());
}

// Remembers what was asked for; each has `bytes`.
class Asked {
 public:
  explicit Asked(uint64_t bytes = 100'000) : bytes_(bytes) {}

  LookAhead::Start start() {
    return [this](SampleId id) {
      const std::lock_guard lock(mutex_);
      numbers_.push_back(id.number);
      return bytes_;
    };
  }
  std::vector<uint64_t> sorted() const {
    const std::lock_guard lock(mutex_);
    std::vector<uint64_t> numbers = numbers_;
    std::ranges::sort(numbers);
    return numbers;
  }
  size_t count() const { return sorted().size(); }

 private:
  const uint64_t bytes_;
  mutable std::mutex mutex_;
  std::vector<uint64_t> numbers_;
};

std::shared_ptr<const std::vector<SampleId>> samples(uint64_t first, uint64_t count) {
  auto ids = std::make_shared<std::vector<SampleId>>();
  for (uint64_t i = 0; i < count; ++i) ids->push_back({first + i, kWholeImage});
  return ids;
}

// A thread reads the sample at a position.
void read(LookAhead& ahead, LookAhead::Reads& reads, uint64_t position, uint64_t nanoseconds,
          uint64_t bytes = 100'000) {
  ahead.begin(position, reads);
  ahead.end(position, reads, nanoseconds, bytes);
}

std::vector<uint64_t> range(uint64_t first, uint64_t end) {
  std::vector<uint64_t> numbers(end - first);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

TEST_CASE("while reads are quick, and when a thread waits for a CPU now and then, nothing is asked for") {
  Asked asked;
  LookAhead ahead(asked.start());
  LookAhead::Reads reads;
  ahead.add(samples(0, 5000));
  for (uint64_t position = 0; position < 4000; ++position)
    read(ahead, reads, position, position % 200 == 0 ? kSlow : kQuick);
  for (uint64_t position = 4000; position < 5000; ++position)
    read(ahead, reads, position, 12'000'000, 20'000'000);  // long ones
  CHECK_FALSE(ahead.on());
  CHECK(asked.count() == 0);
}

TEST_CASE("after some slow reads the samples behind them are asked for, each once") {
  Asked asked;
  LookAhead ahead(asked.start());
  LookAhead::Reads reads;
  CHECK(ahead.add(samples(0, 100)) == 0);
  uint64_t position = 0;
  while (!ahead.on() && position < 60) read(ahead, reads, position++, kSlow);
  REQUIRE(ahead.on());
  wait_until([&] { return asked.count() == 100 - position; });
  CHECK(asked.sorted() == range(position, 100));
  CHECK(ahead.add(samples(100, 50)) == 100);
  wait_until([&] { return asked.count() == 150 - position; });
  CHECK(asked.sorted() == range(position, 150));
}

TEST_CASE("no more is asked for than a number of samples and of bytes, until more are begun") {
  struct Bound {
    uint64_t bytes;  // of a sample
    uint64_t most;   // samples
  };
  constexpr uint64_t kMost = LookAhead::kMostSamples;
  for (const Bound bound : {Bound{0, kMost}, Bound{1000, kMost}, Bound{uint64_t{16} << 20, 4},
                            Bound{LookAhead::kMostBytes * 2, 1}}) {
    Asked asked(bound.bytes);
    LookAhead ahead(asked.start());
    LookAhead::Reads reads;
    ahead.add(samples(0, 20'000));
    uint64_t position = 0;
    while (!ahead.on()) read(ahead, reads, position++, kSlow);
    const uint64_t left_out = bound.most > 300 ? 1 : 0;  // none more until that one was read
    wait_until([&] { return asked.count() == bound.most - left_out; });
    std::this_thread::sleep_for(20ms);
    CHECK(asked.sorted().back() == position + bound.most - 1);
    for (int i = 0; i < 10; ++i) {
      ahead.begin(position++, reads);
      wait_until([&] { return asked.sorted().back() == position + bound.most - 1; });
    }
    std::this_thread::sleep_for(20ms);
    CHECK(asked.count() == 10 + bound.most - left_out);
  }
}

TEST_CASE("some samples are left out, and nothing is asked for once these are read quickly") {
  Asked asked;
  LookAhead ahead(asked.start());
  LookAhead::Reads reads;
  uint64_t position = 0, left_out = 0;
  const auto read_on = [&](uint64_t count, uint64_t nanoseconds) {
    for (uint64_t i = 0; i < count; ++i, ++position) {
      if (position % 64 == 0) ahead.add(samples(position + 128, 64));
      const bool timed = ahead.begin(position, reads);
      left_out += timed ? 1 : 0;
      ahead.end(position, reads, timed || !ahead.on() ? nanoseconds : kQuick, 100'000);
    }
  };
  ahead.add(samples(0, 128));
  read_on(20'000, kSlow);
  CHECK(ahead.on());
  CHECK(left_out > 3);
  CHECK(left_out < 40);
  read_on(40'000, kQuick);
  CHECK_FALSE(ahead.on());
  read_on(100, kSlow);
  CHECK(ahead.on());
}

TEST_CASE("what asking throws is left to those who read the sample, and what is forgotten is not asked for") {
  std::atomic<int> asked{0};
  LookAhead ahead([&](SampleId id) -> uint64_t {
    ++asked;
    if (id.number % 2 == 0) throw Error(ErrorCode::kIo, "there is no such file");
    throw 1;
  });
  LookAhead::Reads reads;
  ahead.add(samples(0, 60));
  uint64_t position = 0;
  while (!ahead.on()) read(ahead, reads, position++, kSlow);
  wait_until([&] { return asked == static_cast<int>(60 - position); });
  ahead.forget();
  CHECK(ahead.add(samples(500, 10)) == 60);
  wait_until([&] { return asked == static_cast<int>(70 - position); });
  ahead.close();
  ahead.close();
  ahead.add(samples(0, 10));
  CHECK_FALSE(ahead.on());
}

// Samples that take a while to read.
class SlowSource : public SampleSource {
 public:
  uint64_t size() const override { return 1000; }
  std::span<const uint8_t> fetch(uint64_t number, SourceScratch& scratch) const override {
    std::this_thread::sleep_for(2ms);
    const std::span<uint8_t> pixels(scratch.bytes.take(12), 12);
    std::ranges::fill(pixels, static_cast<uint8_t>(number));
    scratch.clock.mark(Stage::kRead);
    return pixels;
  }
  SourceSample describe(SampleId id, std::span<const uint8_t> bytes, SourceScratch&,
                        std::string&) const override {
    return {.image = {.bytes = bytes, .encoding = ImageEncoding::kRaw, .size = {2, 2}},
            .label = static_cast<int64_t>(id.number)};
  }
  void append_boxes(uint64_t, std::span<const uint8_t>, int64_t, SourceScratch&,
                    std::vector<LabelledBox>&) const override {}
  Where where(uint64_t) const override { return {}; }
  uint64_t start_reading(uint64_t number) const override {
    const std::lock_guard lock(mutex);
    started.push_back(number);
    return 12;
  }

  mutable std::mutex mutex;
  mutable std::vector<uint64_t> started;
};

TEST_CASE("an engine has the samples of its batches read before their turn where that takes long") {
  const auto source = std::make_shared<SlowSource>();
  EngineSpec spec;
  spec.transforms = {tests::transform("RawTensor", {2, 2})};
  spec.batch_size = 16;
  spec.threads = 2;
  BatchEngine engine(source, spec);
  const auto submit = [&](uint64_t number) {
    BatchRequest request;
    for (uint64_t i = number * 16; i < number * 16 + 16; ++i)
      request.samples.push_back({{i, kWholeImage}, i, i});
    engine.submit(request);
  };
  for (uint64_t number = 0; number < 4; ++number) submit(number);
  for (uint64_t number = 0; number < 20; ++number) {
    std::optional<Batch> batch;
    while (!(batch = engine.next(100ms))) {
    }
    CHECK(batch->failures.empty());
    for (size_t i = 0; i < 16; ++i) CHECK(batch->labels[i] == static_cast<int64_t>(number * 16 + i));
    CHECK(batch->images[0][15 * 12] == static_cast<uint8_t>(number * 16 + 15));
    if (number + 4 < 20) submit(number + 4);
  }
  CHECK(engine.looks_ahead());
  engine.close();
  std::ranges::sort(source->started);
  CHECK(source->started.size() > 100);
  CHECK(std::ranges::adjacent_find(source->started) == source->started.end());  // each once
}

}  // namespace
}  // namespace stoker

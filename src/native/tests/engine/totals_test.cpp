#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "core/clocks/consumer_clock.h"
#include "core/clocks/stage_clock.h"
#include "core/clocks/trace_log.h"
#include "core/clocks/worker_clock.h"
#include "core/threads/pool.h"

namespace stoker {
namespace {

using namespace std::chrono_literals;

constexpr auto kAt = [](const StageTotals& totals, Stage stage) {
  return totals.of[static_cast<size_t>(stage)];
};

TEST_CASE("the time since the last mark belongs to the stage that a mark names") {
  StageClock clock;
  for (int i = 0; i < 3; ++i) {
    clock.begin(0, 0);
    std::this_thread::sleep_for(20ms);
    clock.mark(Stage::kRead);
    clock.mark(Stage::kDecode);
    std::this_thread::sleep_for(5ms);
    clock.mark(Stage::kRead);  // once more: the same sample
    clock.end();
    clock.mark(Stage::kWrite);  // outside of a sample: not counted
  }
  clock.count_bytes(7);
  clock.count_bytes(8);
  const StageTotals totals = clock.totals();
  CHECK(kAt(totals, Stage::kRead).samples == 3);
  CHECK(kAt(totals, Stage::kRead).nanoseconds >= 75'000'000);
  CHECK(kAt(totals, Stage::kDecode).samples == 3);
  CHECK(kAt(totals, Stage::kDecode).nanoseconds < kAt(totals, Stage::kRead).nanoseconds / 2);
  CHECK(kAt(totals, Stage::kWrite).samples == 0);
  CHECK(totals.bytes_read == 15);
}

TEST_CASE("of short samples some stand for all, and a long one ends that") {
  StageClock clock;
  constexpr uint64_t kSamples = 16'000;
  for (uint64_t i = 0; i < kSamples; ++i) {
    clock.begin(0, i);
    clock.mark(Stage::kParse);
    clock.end();
  }
  const uint64_t counted = kAt(clock.totals(), Stage::kParse).samples;
  CHECK(counted > kSamples - kSamples / 10);
  CHECK(counted < kSamples + kSamples / 10);
  uint64_t before = counted;
  for (int i = 0; i < 20; ++i) {  // one of 16 is looked at: it is seen that they are long now
    clock.begin(0, 0);
    std::this_thread::sleep_for(1ms);
    clock.mark(Stage::kParse);
    clock.end();
  }
  before = kAt(clock.totals(), Stage::kParse).samples;
  clock.begin(0, 0);
  std::this_thread::sleep_for(1ms);
  clock.mark(Stage::kParse);
  clock.end();
  CHECK(kAt(clock.totals(), Stage::kParse).samples == before + 1);
}

TEST_CASE("events are kept while the log is on, up to a number, and what is lost is counted") {
  TraceLog log(2);
  StageClock clock;
  clock.attach(&log, 1);
  const auto sample = [&](uint64_t index) {
    clock.begin(5, index);
    clock.mark(Stage::kRead);
    clock.mark(Stage::kDecode);
    clock.end();
  };
  sample(1);
  CHECK(log.take().events.empty());
  log.start(4);
  for (uint64_t index = 2; index < 5; ++index) sample(index);
  const TraceLog::Taken taken = log.take();
  REQUIRE(taken.events.size() == 4);
  CHECK(taken.lost == 2);
  CHECK(taken.events[0].index == 2);
  CHECK(taken.events[3].index == 3);
  CHECK(taken.events[3].what == static_cast<uint16_t>(Stage::kDecode));
  CHECK(taken.events[3].batch == 5);
  CHECK(taken.events[3].thread == 1);
  for (size_t i = 0; i < 4; ++i) CHECK(taken.events[i].begin_ns <= taken.events[i].end_ns);
  CHECK(taken.events[0].end_ns == taken.events[1].begin_ns);
  CHECK(log.take().lost == 0);
  log.stop();
  sample(9);
  CHECK(log.take().events.empty());
}

TEST_CASE("a consumer waits, gets, and works") {
  TraceLog log(1);
  ConsumerClock clock(log, 0);
  log.start(100);
  clock.asked(0);
  std::this_thread::sleep_for(20ms);
  clock.came();
  std::this_thread::sleep_for(5ms);
  clock.given(64);
  std::this_thread::sleep_for(40ms);
  clock.asked(2);
  clock.came();
  clock.given(10);
  ConsumerTotals totals = clock.totals();
  CHECK(totals.batches == 2);
  CHECK(totals.samples == 74);
  CHECK(totals.ready == 2);
  CHECK(totals.wait_ns >= 25'000'000);
  CHECK(totals.handover_ns >= 5'000'000);
  CHECK(totals.handover_ns < totals.wait_ns);
  CHECK(totals.consume_ns >= 40'000'000);
  const auto events = log.take().events;
  CHECK(events.size() == 5);  // two waits, two handovers, one consumption
  CHECK(events.back().index == 2);
  clock.rest();
  std::this_thread::sleep_for(5ms);
  clock.asked(0);  // of another epoch
  CHECK(clock.totals().consume_ns == totals.consume_ns);
}

TEST_CASE("threads of a pool are busy, or idle, and use CPUs") {
  ThreadPool pool(2);
  std::atomic<int> done{0};
  pool.submit(2, [&](size_t index, size_t) {
    const auto end = std::chrono::steady_clock::now() + 60ms;
    while (index == 0 && std::chrono::steady_clock::now() < end) {
    }
    std::this_thread::sleep_until(end);
    ++done;
  });
  while (done < 2) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(30ms);
  const WorkerTotals living = pool.totals();
  CHECK(living.busy_ns >= 110'000'000);
  CHECK(living.idle_ns >= 40'000'000);
  if (living.cpu_ns) {
    CHECK(*living.cpu_ns > 1'000'000);
    CHECK(*living.cpu_ns <= living.busy_ns + living.idle_ns);
  }
  pool.close();
  const WorkerTotals ended = pool.totals();
  CHECK(ended.busy_ns >= living.busy_ns);
  if (living.cpu_ns) CHECK(*ended.cpu_ns >= *living.cpu_ns);
  std::this_thread::sleep_for(5ms);
  const WorkerTotals later = pool.totals();
  CHECK(later.idle_ns == ended.idle_ns);  // they are gone
}

TEST_CASE("what is counted of a thread never goes back") {
  WorkerClock clock;
  clock.begin();
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    while (!stop) {
      clock.rest();
      clock.wake();
      for (int i = 0; i < 1000 && !stop; ++i) {  // so that who looks finds a moment
      }
    }
    clock.end();
  });
  WorkerTotals before = clock.totals();
  for (int i = 0; i < 100'000; ++i) {
    const WorkerTotals now = clock.totals();
    REQUIRE(now.busy_ns >= before.busy_ns);
    REQUIRE(now.idle_ns >= before.idle_ns);
    before = now;
  }
  stop = true;
  worker.join();
}

}  // namespace
}  // namespace stoker

#include "core/threads/pool.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "core/threads/buffer_pool.h"

namespace stoker {
namespace {

using namespace std::chrono_literals;

TEST_CASE("every task of every job runs once, and tasks start in order") {
  std::mutex mutex;
  std::vector<std::pair<int, size_t>> started;
  std::atomic<int> runs{0};
  {
    ThreadPool pool(1);  // one worker: the order of starts is the order of runs
    for (int job = 0; job < 20; ++job) {
      pool.submit(5, [&, job](size_t index, size_t) {
        const std::lock_guard lock(mutex);
        started.emplace_back(job, index);
        ++runs;
      });
    }
    while (runs < 100) std::this_thread::sleep_for(1ms);
  }
  REQUIRE(started.size() == 100);
  for (size_t i = 0; i < started.size(); ++i) CHECK(started[i] == std::pair<int, size_t>(int(i / 5), i % 5));
}

TEST_CASE("a later job starts while a straggler of an earlier one still runs") {
  std::mutex mutex;
  std::condition_variable changed;
  bool later_ran = false, earlier_saw_it = false;
  {
    ThreadPool pool(2);
    std::atomic<bool> finished{false};
    pool.submit(1, [&](size_t, size_t) {
      std::unique_lock lock(mutex);
      earlier_saw_it = changed.wait_for(lock, 10s, [&] { return later_ran; });
      finished = true;
    });
    pool.submit(1, [&](size_t, size_t) {
      {
        const std::lock_guard lock(mutex);
        later_ran = true;
      }
      changed.notify_all();
    });
    while (!finished) std::this_thread::sleep_for(1ms);
  }
  CHECK(earlier_saw_it);
}

TEST_CASE("all threads wake up for one job, and for several of one task each") {
  constexpr size_t kThreads = 16;
  for (const size_t tasks : {kThreads, size_t{1}}) {
    ThreadPool pool(kThreads);
    for (int round = 0; round < 20; ++round) {
      std::atomic<size_t> begun{0}, done{0};
      const auto limit = std::chrono::steady_clock::now() + 60s;
      for (size_t job = 0; job < kThreads / tasks; ++job) {
        pool.submit(tasks, [&](size_t, size_t) {  // each needs a thread of its own
          ++begun;
          while (begun < kThreads && std::chrono::steady_clock::now() < limit)
            std::this_thread::sleep_for(100us);
          ++done;
        });
      }
      while (done < kThreads) std::this_thread::sleep_for(100us);
      REQUIRE(std::chrono::steady_clock::now() < limit);
    }
  }
}

TEST_CASE("workers are numbered below size()") {
  std::atomic<size_t> most{0};
  std::atomic<int> runs{0};
  ThreadPool pool(4);
  pool.submit(1000, [&](size_t, size_t worker) {
    size_t seen = most;
    while (worker > seen && !most.compare_exchange_weak(seen, worker)) {
    }
    ++runs;
  });
  while (runs < 1000) std::this_thread::sleep_for(1ms);
  CHECK(most < pool.size());
}

TEST_CASE("close drops what has not started and waits for what has") {
  std::atomic<int> started{0}, finished{0};
  ThreadPool pool(2);
  pool.submit(10'000, [&](size_t, size_t) {
    ++started;
    std::this_thread::sleep_for(1ms);
    ++finished;
  });
  while (started == 0) std::this_thread::yield();
  pool.close();
  CHECK(started == finished);
  CHECK(started < 10'000);
  pool.close();
  pool.submit(1, [&](size_t, size_t) { ++started; });
  CHECK(started == finished);
}

TEST_CASE("jobs may be submitted from several threads while the pool is closed") {
  ThreadPool pool(3);
  std::vector<std::thread> submitters;
  std::atomic<int> runs{0};
  for (int t = 0; t < 3; ++t) {
    submitters.emplace_back([&] {
      for (int i = 0; i < 200; ++i) pool.submit(3, [&](size_t, size_t) { ++runs; });
    });
  }
  std::this_thread::sleep_for(1ms);
  pool.close();
  for (std::thread& thread : submitters) thread.join();
  CHECK(runs <= 1800);
}

TEST_CASE("a buffer comes back when its last reference dies, and outlives its pool") {
  auto pool = std::make_shared<BufferPool>(1 << 16, 1);
  std::shared_ptr<uint8_t[]> first = pool->take();
  const uint8_t* address = first.get();
  const std::shared_ptr<uint8_t[]> second = pool->take();
  CHECK(second.get() != address);
  first.reset();
  std::shared_ptr<uint8_t[]> third = pool->take();
  CHECK(third.get() == address);
  pool.reset();
  third[0] = 1;
  third.reset();
}

}  // namespace
}  // namespace stoker

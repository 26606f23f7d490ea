// What a forked process finds of its parent's caches and tables, whose locks other threads held at the fork.
#include "core/base/process.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "core/remote/remote_ranges.h"
#include "core/shards/cached_table.h"
#include "core/sources/memory_cache.h"
#include "tests/child.h"

namespace stoker {
namespace {

using tests::in_child;

constexpr int kGood = 42;
constexpr int kForks = 100;

// The allocator of AddressSanitizer (gcc 12) has locks that a child finds taken: there no thread may be in it
// at a fork. What the other thread holds then is found by the plain build.
#if defined(STOKER_SANITIZE_ADDRESS)
constexpr bool kTakesTurns = true;
#else
constexpr bool kTakesTurns = false;
#endif

// in_child() of many children, while another thread calls `work` with growing numbers; how many were good.
template <typename Work, typename Act>
int good_children(const Work& work, const Act& act) {
  std::atomic<bool> stop{false};
  std::mutex mutex;
  const auto turn = [&] { return kTakesTurns ? std::unique_lock(mutex) : std::unique_lock<std::mutex>(); };
  std::thread worker([&] {
    for (uint64_t i = 0; !stop; ++i) {
      const auto lock = turn();
      work(i);
    }
  });
  int good = 0;
  for (bool is_good = true; is_good && good < kForks; good += is_good) {
    const auto lock = turn();
    is_good = in_child(act) == kGood;
  }
  stop = true;
  worker.join();
  return good;
}

TEST_CASE("processes have numbers, and values of their own") {
  struct Three {
    int value = 3;
  };
  const PerProcess<Three> each;
  each.get().value = 7;
  const uint64_t number = process_number();
  const int child = in_child([&] {
    const bool grandchild = in_child([&] { return each.get().value; }) == 3;
    const int inherited = each.get().value;
    each.get().value = 9;
    return grandchild && inherited == 3 && each.get().value == 9 && process_number() == number + 1 ? kGood
                                                                                                   : 1;
  });
  CHECK(child == kGood);
  CHECK(each.get().value == 7);
  CHECK(process_number() == number);
}

TEST_CASE("a lock that a thread of the parent holds is free in a child") {
  const PerProcess<std::mutex> each;
  const std::lock_guard lock(each.get());
  CHECK(in_child([&] { return each.get().try_lock() ? kGood : 1; }) == kGood);
}

TEST_CASE("a child finds in a table what stays there, and takes turns of its own") {
  CachedTable<uint64_t> table(8);  // six stay
  for (int i = 0; i < 64; ++i) table.add();
  std::atomic<int> calls{0};
  const auto get = [&](size_t index) {
    const auto make = [&] { return ++calls, std::make_unique<const uint64_t>(index); };
    return *table.get(index, make, [](const uint64_t&) { return uint64_t{1}; });
  };
  for (size_t i = 0; i < 6; ++i) get(i);
  const auto read_all = [&] {
    const int before = calls;
    for (size_t i = 0; i < 64; ++i) {
      if (get(i) != i) return 1;
    }
    return calls - before == 64 - 6 ? kGood : 2;
  };
  CHECK(good_children([&](uint64_t i) { get(i % 64); }, read_all) == kForks);
}

TEST_CASE("a cache begins empty in a child, whatever its parent was doing") {
  auto cache = std::make_unique<MemoryCache>(uint64_t{64} << 10);
  const std::vector<uint8_t> bytes(100);
  const auto use = [&](uint64_t number) {
    if (!cache->find(number)) cache->offer(number, {.bytes = bytes}, -1, {});
  };
  const auto act = [&] {
    const CacheCounts begun = cache->counts();
    if (begun.hits + begun.misses + begun.bytes != 0 || begun.full || cache->contains(1)) return 1;
    for (int round = 0; round < 2; ++round) use(1);
    const CacheCounts counts = cache->counts();
    cache.reset();
    return counts.hits == 1 && counts.misses == 1 ? kGood : 2;
  };
  CHECK(good_children([&](uint64_t i) { use(i % 256); }, act) == kForks);
  for (int round = 0; round < 2; ++round) use(1);
  CHECK(cache->counts().hits > 0);
}

TEST_CASE("what is read ahead is not for a child, which may still be rid of it") {
  auto ranges = std::make_unique<RemoteRanges>(1 << 20);
  const auto act = [&] {
    try {
      ranges->counts();
    } catch (const Error& error) {
      ranges.reset();
      const bool says_so = std::string(error.what()).find("fork") != std::string::npos;
      return error.code() == ErrorCode::kClosed && says_so ? kGood : 1;
    }
    return 2;
  };
  CHECK(good_children([&](uint64_t) { ranges->counts(); }, act) == kForks);
  ranges->close();
}

}  // namespace
}  // namespace stoker

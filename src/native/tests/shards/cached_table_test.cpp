#include "core/shards/cached_table.h"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace stoker {
namespace {

// A table of numbers that are their own index, and how often each was made.
class Numbers {
 public:
  Numbers(size_t count, uint64_t budget) : table_(budget), calls_(count) {
    for (size_t i = 0; i < count; ++i) table_.add();
  }
  std::shared_ptr<const size_t> get(size_t index) const {
    return table_.get(
        index,
        [&] {
          ++calls_[index];
          return std::make_unique<const size_t>(index);
        },
        [](const size_t&) { return uint64_t{1}; });
  }
  int calls(size_t index) const { return calls_[index]; }

 private:
  CachedTable<size_t> table_;
  mutable std::vector<std::atomic<int>> calls_;
};

TEST_CASE("the first to come stay, those behind take turns") {
  const Numbers numbers(20, 8);  // six stay, two take turns
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < 20; ++i) CHECK(*numbers.get(i) == i);
  }
  for (size_t i = 0; i < 6; ++i) CHECK(numbers.calls(i) == 1);
  for (size_t i = 6; i < 20; ++i) CHECK(numbers.calls(i) == 3);
  CHECK(*numbers.get(19) == 19);
  CHECK(numbers.calls(19) == 3);  // the latest is still there
}

TEST_CASE("what takes its turn lives while it is held") {
  const Numbers numbers(9, 4);
  std::vector<std::shared_ptr<const size_t>> held;
  for (size_t i = 0; i < 9; ++i) held.push_back(numbers.get(i));
  for (size_t i = 0; i < 9; ++i) CHECK(*held[i] == i);
}

TEST_CASE("what cannot be made is not part of the table") {
  CachedTable<int> table(4);
  table.add();
  const auto cost = [](const int&) { return uint64_t{1}; };
  const auto fail = []() -> std::unique_ptr<const int> { throw std::runtime_error("no"); };
  CHECK_THROWS_AS(table.get(0, fail, cost), std::runtime_error);
  CHECK(*table.get(0, [] { return std::make_unique<const int>(3); }, cost) == 3);
}

TEST_CASE("what keeping a thing takes is asked of the thing itself") {
  CachedTable<uint64_t> table(100);  // 75 for those that stay
  for (int i = 0; i < 3; ++i) table.add();
  int calls = 0;
  const auto get = [&](size_t index) {
    const auto make = [&] { return ++calls, std::make_unique<const uint64_t>(40); };
    return *table.get(index, make, [](const uint64_t& thing) { return thing; });
  };
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < 3; ++i) CHECK(get(i) == 40);
  }
  CHECK(calls == 5);  // the first stays, the other two take turns in a slot for one
}

TEST_CASE("many threads ask at once") {
  const Numbers numbers(64, 32);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 20'000; ++i) {
        const size_t index = (i * (2 * t + 1) + t) % 64;
        if (*numbers.get(index) != index) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace stoker

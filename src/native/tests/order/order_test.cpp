#include "core/order/order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "core/base/errors.h"
#include "core/order/philox.h"
#include "tests/rounds.h"

namespace stoker {
namespace {

void check_bijection(uint64_t n, uint64_t seed, uint64_t epoch) {
  const Permutation order(n, seed, epoch);
  std::vector<bool> seen(n);
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t item = order(i);
    REQUIRE(item < n);
    REQUIRE_FALSE(seen[item]);
    seen[item] = true;
    REQUIRE(order.position_of(item) == i);
  }
}

std::vector<uint64_t> take(const BlockPermutation& order, uint64_t start, size_t count) {
  std::vector<uint64_t> out(count);
  order.take(start, out);
  return out;
}

// Every item once, and a run gives what single positions give.
void check_blocks(uint64_t n, uint64_t block, uint64_t window) {
  const BlockPermutation order(n, block, window, n * 31 + block, window);
  const auto items = take(order, 0, n);
  std::vector<bool> seen(n);
  for (uint64_t i = 0; i < n; ++i) {
    REQUIRE(items[i] < n);
    REQUIRE_FALSE(seen[items[i]]);
    seen[items[i]] = true;
    if (i % 7 == 0) REQUIRE(take(order, i, 1)[0] == items[i]);
  }
}

TEST_CASE("an order holds every item exactly once, around every power of two and every square") {
  for (uint64_t n = 1; n <= 300 / tests::kThinned; ++n) check_bijection(n, n * 7, 3);
  for (int k = 9; k <= 18; k += tests::kThinned) {
    for (const uint64_t n : {(1ULL << k) - 1, 1ULL << k, (1ULL << k) + 1}) check_bijection(n, 42, 1);
  }
  for (const uint64_t root : {99ULL, 100ULL, 255ULL, 256ULL, 257ULL}) {
    for (const uint64_t n : {root * root - 1, root * root, root * root + 1}) check_bijection(n, 5, 0);
  }
}

TEST_CASE("items taken together are those that each position has") {
  for (const uint64_t n : {1ULL, 2ULL, 3ULL, 7ULL, 26ULL, 40'000ULL, 40'013ULL, (1ULL << 53) + 1}) {
    const Permutation order(n, n, 5);
    for (const uint64_t count : {0ULL, 1ULL, 3ULL, 4ULL, 5ULL, 26ULL, 1003ULL}) {
      for (const uint64_t start : {uint64_t{0}, n / 3, n - std::min(n, count)}) {
        std::vector<uint64_t> items(std::min(count, n - start));
        order.take(start, items);
        for (size_t i = 0; i < items.size(); ++i) REQUIRE(items[i] == order(start + i));
      }
    }
  }
}

TEST_CASE("huge orders stay in range and answer at once") {
  for (const uint64_t n : {1'000'000'000'000ULL, (1ULL << 53) + 1, (1ULL << 62) - 1}) {
    const Permutation order(n, 1, 2);
    for (uint64_t i = 0; i < 1000; ++i) REQUIRE(order(n - 1 - i) < n);
  }
  CHECK_THROWS_AS(Permutation(0, 0, 0), Error);
  CHECK_THROWS_AS(Permutation(1ULL << 62, 0, 0), Error);
}

TEST_CASE("a block shuffle holds every item exactly once, whatever block and window are") {
  for (uint64_t n = 1; n <= 40; ++n) {
    for (uint64_t block = 1; block <= n + 2; ++block) {
      for (uint64_t window = 1; window <= 6; ++window) check_blocks(n, block, window);
    }
  }
  for (int k = 6; k <= 14; ++k) {
    for (const uint64_t n : {(1ULL << k) - 1, 1ULL << k, (1ULL << k) + 1}) {
      for (const uint64_t block : {1ULL, 7ULL, 256ULL, 1ULL << 40}) check_blocks(n, block, 16);
      check_blocks(n, 16, ~uint64_t{0});
    }
  }
}

TEST_CASE("a block shuffle of huge sizes reads a window's blocks whole before it goes on") {
  const uint64_t block = 256, window = 16, cells = block * window;
  for (const uint64_t n : {1'000'000'000'001ULL, (1ULL << 62) - 1}) {
    const BlockPermutation order(n, block, window, 3, 9);
    auto items = take(order, 5 * cells, cells);
    std::sort(items.begin(), items.end());
    for (size_t i = 0; i < cells; ++i) {
      REQUIRE(items[i] % block == i % block);
      REQUIRE(items[i] / block == items[i - i % block] / block);
    }
    for (const uint64_t item : take(order, n - 1000, 1000)) REQUIRE(item < n);
  }
  CHECK_THROWS_AS(BlockPermutation(1ULL << 62, 1, 1, 0, 0), Error);
  CHECK_THROWS_AS(BlockPermutation(0, 1, 1, 0, 0), Error);
  CHECK_THROWS_AS(BlockPermutation(9, 0, 1, 0, 0), Error);
  CHECK_THROWS_AS(BlockPermutation(9, 1, 0, 0, 0), Error);
}

TEST_CASE("Philox4x32-10 gives the known answers of its authors' test vectors") {
  using Words = std::array<uint32_t, 4>;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

}  // namespace
}  // namespace stoker

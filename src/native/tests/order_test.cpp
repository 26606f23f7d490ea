#include "core/order.h"

#include <doctest/doctest.h>

#include <vector>

#include "core/errors.h"
#include "core/philox.h"

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
  }
}

TEST_CASE("an order holds every item exactly once, around every power of two and every square") {
  for (uint64_t n = 1; n <= 300; ++n) check_bijection(n, n * 7, 3);
  for (int k = 9; k <= 18; ++k) {
    for (const uint64_t n : {(1ULL << k) - 1, 1ULL << k, (1ULL << k) + 1}) check_bijection(n, 42, 1);
  }
  for (const uint64_t root : {99ULL, 100ULL, 255ULL, 256ULL, 257ULL}) {
    for (const uint64_t n : {root * root - 1, root * root, root * root + 1}) check_bijection(n, 5, 0);
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

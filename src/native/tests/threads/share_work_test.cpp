#include "core/threads/share_work.h"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>

namespace stoker {
namespace {

TEST_CASE("work is done by all threads, and the first error comes back when all have ended") {
  std::atomic<int> left{100}, calls{0};
  const size_t ran = share_work(4, [&] {
    ++calls;
    while (--left >= 0) {
    }
  });
  CHECK(ran == 4);
  CHECK(calls == 4);

  std::atomic<int> ended{0};
  const auto fails = [&] {
    if (++ended == 2) throw std::runtime_error("no memory");
  };
  CHECK_THROWS_WITH(share_work(3, fails), "no memory");
  CHECK(ended == 3);
  CHECK(share_work(0, [] {}) == 1);
}

}  // namespace
}  // namespace stoker

#include "core/engine/batch_column.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace stoker {
namespace {

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string text_of(std::span<const uint8_t> bytes) {
  return {bytes.begin(), bytes.end()};
}

TEST_CASE("values stand in the order of the samples, whichever thread came first") {
  BatchColumn column(4, 2);
  column.set(3, 1, bytes_of("last"));
  column.set(0, 1, bytes_of("first"));
  column.set(1, 0, bytes_of(""));
  column.set(2, 0, bytes_of("xy"));
  column.set(2, 1, bytes_of("second"));  // another sample in its place
  CHECK(text_of(column.of(0)) == "first");
  CHECK(column.of(1).empty());
  CHECK(text_of(column.of(2)) == "second");
  CHECK(text_of(column.of(3)) == "last");
  const GatheredColumn gathered = gather(column, 1);
  CHECK(gathered.offsets == std::vector<int64_t>{0, 5, 5, 11, 15});
  CHECK(std::string(gathered.values.get(), gathered.values.get() + 15) == "firstsecondlast");
}

TEST_CASE("samples that are not set have no values") {
  const BatchColumn column(2, 1), none(0, 1);
  CHECK(column.of(1).empty());
  CHECK(gather(column, 8).offsets == std::vector<int64_t>{0, 0, 0});
  CHECK(gather(none, 8).offsets == std::vector<int64_t>{0});
}

TEST_CASE("offsets count values") {
  BatchColumn column(2, 1);
  column.set(0, 0, bytes_of("12345678"));
  column.set(1, 0, bytes_of("1234567812345678"));
  CHECK(gather(column, 8).offsets == std::vector<int64_t>{0, 1, 3});
}

TEST_CASE("each thread appends to memory of its own") {
  constexpr size_t kThreads = 4, kSamples = 400;
  BatchColumn column(kSamples, kThreads);
  std::vector<std::jthread> threads;
  for (size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (size_t i = thread; i < kSamples; i += kThreads) column.set(i, thread, bytes_of(std::to_string(i)));
    });
  }
  threads.clear();
  for (size_t i = 0; i < kSamples; ++i) CHECK(text_of(column.of(i)) == std::to_string(i));
}

}  // namespace
}  // namespace stoker

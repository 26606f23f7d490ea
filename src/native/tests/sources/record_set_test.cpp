#include "core/sources/record_set.h"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "tests/shard.h"

namespace stoker {
namespace {

using tests::TemporaryFile;

std::string shard_of(const std::vector<std::string>& payloads, std::string& index) {
  std::string all;
  for (const std::string& payload : payloads) {
    std::vector<uint8_t> frame(payload.size() + kFrameBytes);
    write_frame(tests::bytes_of(payload), frame);
    index += std::to_string(all.size()) + " " + std::to_string(frame.size()) + "\n";
    all.append(frame.begin(), frame.end());
  }
  return all;
}

// A shard with its index, of which a manifest says what is so.
struct Listed {
  explicit Listed(const std::vector<std::string>& payloads)
      : count(payloads.size()), shard(shard_of(payloads, text)) {}

  ListedShard listed() const { return listed_as(index.path()); }
  ListedShard listed_as(const std::string& path) const {
    return {shard.path(), path, count, std::filesystem::file_size(shard.path())};
  }

  std::string text;
  uint64_t count;
  TemporaryFile shard;
  TemporaryFile index{text};
};

std::string payload(const RecordSet& set, uint64_t number) {
  SourceScratch scratch;
  const auto bytes = set.read(number, PayloadCheck::kOn, scratch);
  return {bytes.begin(), bytes.end()};
}

TEST_CASE("listed shards are read by their indexes, whether all at once or when needed") {
  const Listed a({"one", "two", std::string(70'000, 'x')}), b({"four", ""});
  for (const bool at_once : {true, false}) {
    RecordSet set(4, at_once ? kIndexBytes : 1);  // of one byte, an index only ever takes its turn
    set.add_listed(a.listed());
    set.add_listed(b.listed());
    if (at_once) CHECK(set.open_listed(2).empty());
    REQUIRE(set.size() == 5);
    for (int round = 0; round < 2; ++round) {
      CHECK(payload(set, 0) == "one");
      CHECK(payload(set, 3) == "four");
      CHECK(payload(set, 2).size() == 70'000);
      CHECK(payload(set, 4).empty());
    }
    CHECK(set.where(1).offset == 3 + 16);
  }
}

TEST_CASE("an index that is another's is reported, and is an error when it is needed") {
  const Listed good({"one", "two", "three"});
  const std::string& text = good.text;  // 0 19, 19 19, 38 21
  for (const std::string& wrong :
       {std::string(), text.substr(0, text.size() - 1), text + "59 16\n", text.substr(0, text.find('\n') + 1),
        std::string("0 19\n19 19\n38 22\n"), std::string("0 19\n19 18\n37 22\n9"),
        std::string("0 19\n20 18\n38 21\n"), std::string("0 19\n19 9\n28 31\n"),
        std::string("0 19\n19 -19\n38 21\n"), std::string("0 19\n19  19\n38 21"),
        std::string("0 19 19 19 38 21 "), std::string("0 19\n19 999999999999999999999\n38 21\n"),
        std::string("0 19\n19 18446744073709551600\n38 21\n")}) {
    const TemporaryFile index(wrong);
    RecordSet set(4);
    set.add_listed(good.listed_as(index.path()));
    INFO(wrong);
    CHECK(set.open_listed(1) == std::vector<size_t>{0});
    try {
      payload(set, 1);
      FAIL("it was read");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kIndexMismatch);
      CHECK(error.where().path == index.path());
    }
    set.set_extents(0, {{0, 19}, {19, 19}, {38, 21}});
    CHECK(payload(set, 1) == "two");
    CHECK_THROWS_AS(set.set_extents(0, {{0, 19}}), Error);
    CHECK_THROWS_AS(set.set_extents(1, {}), Error);
  }
}

TEST_CASE("shards of another length and what is missing are reported") {
  const Listed good({"one", "two"});
  RecordSet set(4);
  for (int64_t more : {0, 1, -1}) {
    ListedShard listed = good.listed();
    listed.bytes += static_cast<uint64_t>(more);
    set.add_listed(listed);
  }
  set.add_listed({"/nowhere/a", "/nowhere/a.idx", 2, 38});
  set.add_listed(good.listed_as("/nowhere/a.idx"));
  CHECK(set.open_listed(3) == std::vector<size_t>{1, 2, 3, 4});
}

TEST_CASE("threads that need the same index at once all get it") {
  const Listed a({"one", "two"}), b({"three", "four"});
  const RecordSet* shared = nullptr;
  RecordSet set(1, 1);
  set.add_listed(a.listed());
  set.add_listed(b.listed());
  shared = &set;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::string expected[] = {"one", "two", "three", "four"};
      for (size_t i = 0; i < 500; ++i) {
        if (payload(*shared, (i + t) % 4) != expected[(i + t) % 4]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace stoker

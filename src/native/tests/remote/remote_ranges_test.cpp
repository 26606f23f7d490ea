#include "core/remote/remote_ranges.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/random_access_file.h"
#include "core/engine/engine.h"
#include "core/sources/file_set.h"
#include "core/sources/record_source.h"
#include "tests/shard.h"

namespace stoker {
namespace {

using std::chrono::milliseconds;

// Byte i of file f, whatever the range.
uint8_t byte_of(int64_t file, uint64_t at) {
  return static_cast<uint8_t>(static_cast<uint64_t>(file) * 131 + at * 7 + at / 256);
}

std::shared_ptr<std::vector<uint8_t>> bytes_of(const RemoteSpan& span) {
  auto bytes = std::make_shared<std::vector<uint8_t>>(span.length);
  for (size_t i = 0; i < bytes->size(); ++i) (*bytes)[i] = byte_of(span.file, span.offset + i);
  return bytes;
}

void deliver(RemoteRanges& ranges, const FetchJob& job) {
  const auto bytes = bytes_of(job.span);
  ranges.deliver(job.id, *bytes, bytes);
}

// One that fetches until the ranges are closed.
std::thread fetcher(RemoteRanges& ranges) {
  return std::thread([&ranges] {
    while (!ranges.closed()) {
      if (const auto job = ranges.next(milliseconds(20))) deliver(ranges, *job);
    }
  });
}

bool is_right(const TakenBytes& taken, const RemoteSpan& span) {
  const auto expected = bytes_of(span);
  return std::vector<uint8_t>(taken.bytes.begin(), taken.bytes.end()) == *expected;
}

template <typename Call>
std::optional<Error> error_of(const Call& call) {
  try {
    call();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

TEST_CASE("a range is handed out piece by piece, and released with the last use of the last piece") {
  RemoteRanges ranges(1000);
  ranges.expect({{{3, 100, 50}, 4, {{100, 20, 2}, {130, 20, 1}}}}, 5);
  const auto job = ranges.next(milliseconds(0));
  REQUIRE(job);
  CHECK(job->span == RemoteSpan{3, 100, 50});
  CHECK_FALSE(ranges.next(milliseconds(0)));
  CHECK(ranges.counts().held_bytes == 50);
  deliver(ranges, *job);
  for (const RemoteSpan span : {RemoteSpan{3, 130, 20}, RemoteSpan{3, 100, 20}}) {
    CHECK(is_right(ranges.take(span), span));
    CHECK(ranges.counts().held_bytes == 50);
  }
  {
    const TakenBytes last = ranges.take({3, 100, 20});
    CHECK(ranges.counts().held_bytes == 50);  // the bytes live on
    CHECK(is_right(last, {3, 100, 20}));
  }
  CHECK(ranges.counts().held_bytes == 0);
  CHECK(ranges.counts().requests == 1);
  CHECK(ranges.counts().unplanned == 0);
}

TEST_CASE("what does not fit the budget waits, in order, until something is released") {
  RemoteRanges ranges(100);
  ranges.expect(
      {{{0, 0, 60}, 0, {{0, 60, 1}}}, {{0, 60, 60}, 1, {{60, 60, 1}}}, {{0, 120, 300}, 2, {{120, 300, 1}}}},
      3);
  const auto first = ranges.next(milliseconds(0));
  REQUIRE(first);
  CHECK_FALSE(ranges.next(milliseconds(1)));
  deliver(ranges, *first);
  CHECK_FALSE(ranges.next(milliseconds(1)));
  ranges.take({0, 0, 60});
  const auto second = ranges.next(milliseconds(0));
  REQUIRE(second);
  CHECK_FALSE(ranges.next(milliseconds(1)));  // larger than the budget: only when nothing else is held
  deliver(ranges, *second);
  ranges.take({0, 60, 60});
  CHECK(ranges.next(milliseconds(0))->span.length == 300);
  CHECK(ranges.counts().peak_bytes == 300);
}

TEST_CASE("what is not planned is read at once, before what is queued") {
  RemoteRanges ranges(10);
  ranges.expect({{{0, 0, 10}, 0, {{0, 10, 1}}}, {{0, 10, 10}, 1, {{10, 10, 1}}}}, 2);
  REQUIRE(ranges.next(milliseconds(0)));  // the budget is full
  std::thread taker([&] { CHECK(is_right(ranges.take({7, 5, 1000}), {7, 5, 1000})); });
  std::optional<FetchJob> job;
  while (!(job = ranges.next(milliseconds(10)))) {
  }
  CHECK(job->span == RemoteSpan{7, 5, 1000});
  deliver(ranges, *job);
  taker.join();
  CHECK(ranges.counts().unplanned == 1);
}

TEST_CASE("a piece whose range is not given out in time is read by itself") {
  RemoteRanges ranges(10);
  ranges.expect({{{0, 0, 10}, 9, {{0, 10, 1}}}, {{0, 10, 9}, 8, {{10, 4, 1}, {14, 5, 1}}}}, 10);
  REQUIRE(ranges.next(milliseconds(0)));  // and never taken
  std::thread fetches = fetcher(ranges);
  std::thread other([&] { CHECK(is_right(ranges.take({0, 10, 4}), {0, 10, 4})); });
  CHECK(is_right(ranges.take({0, 14, 5}), {0, 14, 5}));
  other.join();
  CHECK(ranges.counts().unplanned == 2);
  ranges.close();
  fetches.join();
}

TEST_CASE("a long range that cannot be had is asked for piece by piece, and a piece that cannot says why") {
  RemoteRanges ranges(100);
  ranges.expect({{{0, 0, 20}, 1, {{0, 10, 1}, {10, 10, 1}}}}, 2);
  ranges.fail(ranges.next(milliseconds(0))->id, Error(ErrorCode::kStorage, "it ends at 15"));
  CHECK(ranges.counts().held_bytes == 0);
  std::thread fetches([&] {
    for (int i = 0; i < 2; ++i) {
      std::optional<FetchJob> job;
      while (!(job = ranges.next(milliseconds(10)))) {
      }
      if (job->span.offset == 0) {
        deliver(ranges, *job);
      } else {
        ranges.fail(job->id, Error(ErrorCode::kStorage, "it ends at 15"));
      }
    }
  });
  CHECK(is_right(ranges.take({0, 0, 10}), {0, 0, 10}));
  const auto error = error_of([&] { ranges.take({0, 10, 10}); });
  fetches.join();
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kStorage);
  CHECK(std::string(error->what()) == "it ends at 15");
}

TEST_CASE("bytes of another length than asked for are an error, not bytes") {
  for (const size_t length : {size_t{0}, size_t{9}, size_t{11}}) {
    RemoteRanges ranges(100);
    ranges.expect({{{0, 0, 10}, 0, {{0, 10, 1}}}}, 1);
    const auto bytes = std::make_shared<std::vector<uint8_t>>(length);
    ranges.deliver(ranges.next(milliseconds(0))->id, *bytes, bytes);
    const auto error = error_of([&] { ranges.take({0, 0, 10}); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kStorage);
    CHECK(ranges.counts().held_bytes == 0);
  }
  RemoteRanges ranges(100);
  CHECK_THROWS_AS(ranges.expect({{{0, 10, 10}, 0, {{9, 2, 1}}}}, 1), Error);
  CHECK_THROWS_AS(ranges.expect({{{0, 10, 10}, 0, {{12, 9, 1}}}}, 1), Error);
  CHECK_THROWS_AS(ranges.expect({{{0, 10, 10}, 0, {{UINT64_MAX, 2, 1}}}}, 1), Error);
  ranges.deliver(17, {}, nullptr);  // not asked for
  ranges.fail(17, Error(ErrorCode::kStorage, "late"));
}

TEST_CASE("uses that are over release their ranges, wherever these are") {
  RemoteRanges ranges(25);
  ranges.expect(
      {{{0, 0, 10}, 0, {{0, 10, 1}}}, {{0, 10, 10}, 1, {{10, 10, 1}}}, {{0, 20, 10}, 2, {{20, 10, 1}}}}, 3);
  const auto here = ranges.next(milliseconds(0)), under_way = ranges.next(milliseconds(0));
  REQUIRE(under_way);
  deliver(ranges, *here);
  CHECK(ranges.counts().held_bytes == 20);
  CHECK_FALSE(ranges.wait_for_demand(10, 100, milliseconds(0)));
  ranges.release_until(3);
  CHECK(ranges.wait_for_demand(1, 1, milliseconds(0)));
  CHECK(ranges.counts().held_bytes == 10);
  deliver(ranges, *under_way);  // not wanted any more
  CHECK(ranges.counts().held_bytes == 0);
  CHECK_FALSE(ranges.next(milliseconds(0)));
}

TEST_CASE("forget and close wake everybody at once, while requests hang") {
  RemoteRanges ranges(1000);
  ranges.expect({{{0, 0, 10}, 0, {{0, 10, 1}}}, {{0, 10, 10}, 1, {{10, 10, 1}}}}, 2);
  const auto hanging = ranges.next(milliseconds(0));
  std::atomic<int> woken{0};
  const auto taker = [&](RemoteSpan span) {
    return std::thread([&, span] {
      const auto error = error_of([&] { ranges.take(span); });
      if (error && error->code() == ErrorCode::kClosed) ++woken;
    });
  };
  std::thread planned = taker({0, 0, 10}), unplanned = taker({5, 5, 5});
  while (ranges.counts().unplanned == 0) std::this_thread::yield();
  std::this_thread::sleep_for(milliseconds(20));
  ranges.forget();
  planned.join();
  unplanned.join();
  CHECK(woken == 2);
  CHECK(ranges.counts().held_bytes == 10);  // still on its way
  CHECK_FALSE(ranges.next(milliseconds(0)));
  deliver(ranges, *hanging);
  CHECK(ranges.counts().held_bytes == 0);
  ranges.expect({{{0, 0, 10}, 0, {{0, 10, 1}}}}, 1);  // it goes on
  CHECK(ranges.next(milliseconds(0)));
  ranges.close();
  CHECK_FALSE(ranges.next(milliseconds(60'000)));
  CHECK_FALSE(ranges.wait_for_demand(100, 100, milliseconds(60'000)));
  CHECK(error_of([&] { ranges.take({0, 0, 10}); })->code() == ErrorCode::kClosed);
}

TEST_CASE("bytes outlive the ranges they came from") {
  TakenBytes kept;
  {
    RemoteRanges ranges(100);
    ranges.expect({{{0, 0, 10}, 0, {{0, 10, 2}}}}, 2);
    deliver(ranges, *ranges.next(milliseconds(0)));
    kept = ranges.take({0, 0, 10});
  }
  CHECK(is_right(kept, {0, 0, 10}));
}

TEST_CASE("many threads that fetch, take, release and forget at once get right bytes or an error") {
  RemoteRanges ranges(5000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.push_back(fetcher(ranges));
  constexpr uint64_t kUses = 600;
  const auto span_of = [](uint64_t use) { return RemoteSpan{static_cast<int64_t>(use % 3), use * 40, 40}; };
  std::atomic<uint64_t> next{0};
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (uint64_t use = next++; use < kUses; use = next++) {
        const auto error = error_of([&] {
          if (!is_right(ranges.take(span_of(use)), span_of(use))) ++wrong;
        });
        if (error && error->code() != ErrorCode::kClosed) ++wrong;
      }
    });
  }
  for (uint64_t use = 0; use < kUses; use += 20) {
    std::vector<ExpectedRange> expected;
    for (uint64_t i = use; i < use + 20; ++i) {
      const RemoteSpan span = span_of(i);
      expected.push_back({span, i, {{span.offset, span.length, 1}}});
    }
    ranges.expect(std::move(expected), use + 20);
    if (use % 100 == 60) ranges.release_until(next.load() / 2);
    if (use == 300) ranges.forget();
  }
  while (next < kUses) std::this_thread::yield();
  for (size_t i = 4; i < 8; ++i) threads[i].join();
  ranges.close();
  for (size_t i = 0; i < 4; ++i) threads[i].join();
  CHECK(wrong == 0);
  CHECK(ranges.counts().held_bytes == 0);
}

// Reads a file of this machine as if it were remote, and spoils some answers.
struct Storage {
  std::shared_ptr<RemoteReader> reader() {
    return std::make_shared<DirectReader>([this](const RemoteSpan& span) {
      std::vector<uint8_t> bytes(span.length);
      const size_t got = RandomAccessFile(path).read_at(span.offset, bytes);
      bytes.resize(got);
      if (asked++ < spoiled) bytes[bytes.size() - 20] ^= 1;
      return bytes;
    });
  }
  std::string path;
  int spoiled = 0;
  int asked = 0;
};

TEST_CASE("records of remote shards are checked, and read once more if their checksum is wrong") {
  const tests::Shard shard({std::string(100, 'a'), std::string(200, 'b')});
  const auto local = shard.records("train-0");
  Storage storage{shard.records()->where(0).path};
  const auto remote = shard.records("s3://b/train-0");
  remote->set_remote({storage.reader(), number_remote_files(1)});
  for (const int spoiled : {0, 1, 2}) {
    storage.asked = 0;
    storage.spoiled = spoiled;
    SourceScratch scratch, other;
    INFO(spoiled);
    const auto error = error_of([&] {
      const auto read = remote->read(1, PayloadCheck::kOn, scratch),
                 expected = local->read(1, PayloadCheck::kOn, other);
      CHECK(std::vector<uint8_t>(read.begin(), read.end()) ==
            std::vector<uint8_t>(expected.begin(), expected.end()));
    });
    CHECK(storage.asked == (spoiled == 0 ? 1 : 2));
    CHECK(error.has_value() == (spoiled == 2));
    if (error) {
      CHECK(error->code() == ErrorCode::kCorruptRecord);
      CHECK(error->where().path == "s3://b/train-0");
      CHECK(error->where().record == 1);
    }
  }
  storage.path = "/nowhere";
  SourceScratch scratch;
  const auto error = error_of([&] { remote->read(0, PayloadCheck::kOn, scratch); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kIo);
  CHECK(remote->remote_span(1).length == 216);
  CHECK(local->remote_span(1).file == -1);
}

TEST_CASE("remote files and members of remote archives are read by file, offset and length") {
  const tests::TemporaryFile file(std::string("0123456789"));
  FileList list{.base = "s3://b/tree",
                .names = "ab",
                .starts = {0, 1, 2},
                .labels = {0, 1},
                .sizes = {10, 4},
                .archives = {"x.tar"},
                .archive_of = {-1, 0},
                .offsets = {0, 3}};
  FileSet set(std::move(list));
  Storage storage{file.path()};
  set.set_remote({storage.reader(), 50});
  CHECK(set.remote_span(0) == RemoteSpan{51, 0, 10});
  CHECK(set.remote_span(1) == RemoteSpan{50, 3, 4});
  SourceScratch scratch;
  const auto whole = set.fetch(0, scratch);
  CHECK(std::string(whole.begin(), whole.end()) == "0123456789");
  const auto member = set.fetch(1, scratch);
  CHECK(std::string(member.begin(), member.end()) == "3456");
  CHECK(set.where(0).path == "s3://b/tree/a");
}

}  // namespace
}  // namespace stoker

#include "core/sources/node_cache.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "core/base/random_access_file.h"
#include "core/shards/crc32c.h"
#include "core/shards/tfrecord.h"
#include "tests/counted_source.h"
#include "tests/shard.h"

namespace stoker {
namespace {

using tests::CountedSource;
using tests::fetched;

int opened(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(descriptor >= 0);
  return descriptor;
}

// A cache directory: the file of one source, and the counter.
struct CacheFiles {
  tests::TemporaryFile file{""};
  tests::TemporaryFile counter{std::string(8, '\0')};

  std::shared_ptr<NodeCacheFile> open(const CountedSource& source, uint64_t budget = 1 << 30) const {
    uint64_t bytes = 0;
    for (const uint64_t size : source.sizes()) bytes += size + kFrameBytes;
    const int descriptor = opened(file.path());
    if (bytes < 1 << 30) REQUIRE(::ftruncate(descriptor, static_cast<off_t>(bytes)) == 0);
    return std::make_shared<NodeCacheFile>(descriptor, opened(counter.path()), budget, source.sizes());
  }
  uint64_t on_disk() const {
    struct stat status{};
    REQUIRE(::stat(file.path().c_str(), &status) == 0);
    return static_cast<uint64_t>(status.st_blocks) * 512;
  }
};

std::vector<uint64_t> sizes_of(uint64_t count) {
  std::vector<uint64_t> sizes;
  for (uint64_t i = 0; i < count; ++i) sizes.push_back(i * 7919 % 20000);
  return sizes;
}

TEST_CASE("a second process, or the same one later, finds what the first has kept") {
  const CacheFiles files;
  const auto source = std::make_shared<CountedSource>(sizes_of(20));
  for (int process = 0; process < 3; ++process) {
    const auto cache = files.open(*source);
    const CachedSource cached(source, cache);
    for (uint64_t i = 0; i < 20; ++i) CHECK(fetched(cached, i) == source->expected(i));
    CHECK(source->asked == 20);
    CHECK(cache->counts().hits == (process == 0 ? 0 : 20));
    CHECK(cache->counts().misses == (process == 0 ? 20 : 0));
    CHECK(cache->counts().bytes >= files.on_disk());
    CHECK(cache->problem().empty());
  }
}

TEST_CASE("the file is a shard of TFRecords: every sample has its frame where the sizes say") {
  const CacheFiles files;
  const CountedSource source({5, 0, 300});
  const auto cache = files.open(source);
  SourceScratch scratch;
  for (const uint64_t i : {2, 0, 1}) cache->fetch(i, source, scratch);
  CHECK(scan_shard(RandomAccessFile(files.file.path())) ==
        std::vector<RecordExtent>{{0, 21}, {21, 16}, {37, 316}});
  CHECK(cache->file_bytes() == 353);
}

TEST_CASE("any changed byte is a miss, and is repaired") {
  const CacheFiles files;
  const auto source = std::make_shared<CountedSource>(std::vector<uint64_t>{9, 40, 3});
  const auto cache = files.open(*source);
  const CachedSource cached(source, cache);
  for (uint64_t i = 0; i < 3; ++i) fetched(cached, i);
  const int file = opened(files.file.path());
  for (off_t at = 0; at < static_cast<off_t>(cache->file_bytes()); ++at) {
    uint8_t byte = 0;
    REQUIRE(::pread(file, &byte, 1, at) == 1);
    const auto flipped = static_cast<uint8_t>(byte ^ (1U << (at % 8)));
    REQUIRE(::pwrite(file, &flipped, 1, at) == 1);
    const int before = source->asked;
    for (uint64_t i = 0; i < 3; ++i) CHECK(fetched(cached, i) == source->expected(i));
    CHECK(source->asked == before + 1);
    REQUIRE(::pread(file, &byte, 1, at) == 1);
    CHECK(byte != flipped);
  }
  ::close(file);
}

TEST_CASE("a sample that is not as long as listed is never kept") {
  const CacheFiles files;
  const auto source = std::make_shared<CountedSource>(std::vector<uint64_t>{100, 200});
  const CachedSource cached(source, files.open(*source));
  source->extra = 1;
  CHECK(fetched(cached, 0) == source->expected(0));
  CHECK(files.on_disk() == 0);
  source->extra = 0;
  CHECK(fetched(cached, 0).size() == 100);
}

TEST_CASE("the budget holds for what the disk gives, over many threads and two files") {
  const CacheFiles files;
  const auto source = std::make_shared<CountedSource>(sizes_of(300));
  constexpr uint64_t kBudget = 1 << 20;
  const std::shared_ptr<NodeCacheFile> caches[] = {files.open(*source, kBudget),
                                                   files.open(*source, kBudget)};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const CachedSource cached(source, caches[t % 2]);
      for (uint64_t i = 0; i < 300; ++i) {
        const uint64_t number = (i * 7 + t * 37) % 300;
        wrong += fetched(cached, number) != source->expected(number);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(files.on_disk() <= kBudget);
  CHECK(files.on_disk() > kBudget * 3 / 4);
  CHECK(caches[0]->counts().bytes <= kBudget);
  CHECK(caches[0]->counts().full);
  CHECK(caches[0]->counts().errors == 0);
}

TEST_CASE("neighbours that share a block count it once") {
  const CacheFiles files;
  const auto source = std::make_shared<CountedSource>(std::vector<uint64_t>(100, 500));
  const auto cache = files.open(*source);
  const CachedSource cached(source, cache);
  for (uint64_t i = 0; i < 100; ++i) fetched(cached, i * 37 % 100);
  CHECK(files.on_disk() >= 100 * 516);
  CHECK(cache->counts().bytes >= files.on_disk());
  CHECK(cache->counts().bytes <= files.on_disk() + 100 * 64);
}

TEST_CASE("a counter that is damaged or locked by others stops no reading") {
  const CacheFiles files;
  const auto source = std::make_shared<CountedSource>(std::vector<uint64_t>{100, 200});
  SUBCASE("cut short") {
    const auto cache = files.open(*source);
    REQUIRE(::truncate(files.counter.path().c_str(), 3) == 0);
    CHECK(fetched(CachedSource(source, cache), 0) == source->expected(0));
    CHECK(cache->counts().errors == 1);
    CHECK(cache->counts().bytes == 0);
    CHECK_FALSE(cache->problem().empty());
  }
  SUBCASE("beyond every budget") {
    const int counter = opened(files.counter.path());
    REQUIRE(::pwrite(counter, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, 0) == 8);
    ::close(counter);
    const auto cache = files.open(*source);
    CHECK(fetched(CachedSource(source, cache), 0) == source->expected(0));
    CHECK(cache->counts().full);
  }
  SUBCASE("locked for good") {
    const int counter = opened(files.counter.path());
    REQUIRE(::flock(counter, LOCK_EX) == 0);
    const auto cache = files.open(*source);
    CHECK(fetched(CachedSource(source, cache), 0) == source->expected(0));
    CHECK(cache->counts().errors == 0);
    ::close(counter);
    fetched(CachedSource(source, cache), 0);
    fetched(CachedSource(source, cache), 0);
    CHECK(cache->counts().hits == 1);
  }
  CHECK(files.on_disk() <= 8192);
}

TEST_CASE("a file that cannot be written stops no reading, and is not tried again") {
  const CacheFiles files;
  const auto source = std::make_shared<CountedSource>(std::vector<uint64_t>{100, 200});
  const auto cache = std::make_shared<NodeCacheFile>(::open(files.file.path().c_str(), O_RDONLY | O_CLOEXEC),
                                                     opened(files.counter.path()), 1 << 20, source->sizes());
  const CachedSource cached(source, cache);
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < 2; ++i) CHECK(fetched(cached, i) == source->expected(i));
  }
  CHECK(cache->counts().errors == 1);
  CHECK(cache->problem().find("cannot be written") != std::string::npos);
}

TEST_CASE("a file cut short under its readers is misses, not a signal") {
  const CacheFiles files;
  const auto source = std::make_shared<CountedSource>(std::vector<uint64_t>(50, 5000));
  const auto cache = files.open(*source);
  const CachedSource cached(source, cache);
  for (uint64_t i = 0; i < 50; ++i) fetched(cached, i);
  REQUIRE(::truncate(files.file.path().c_str(), 70001) == 0);
  for (uint64_t i = 0; i < 50; ++i) CHECK(fetched(cached, i) == source->expected(i));
  CHECK(source->asked == 50 + 50 - 70001 / 5016);
  for (uint64_t i = 0; i < 50; ++i) fetched(cached, i);
  CHECK(source->asked == 50 + 50 - 70001 / 5016);
}

// Samples whose pixels are copied by themselves, behind this many other bytes.
constexpr size_t kHeadBytes = 40;

struct Copied {
  bool good = false;
  bool mapped = false;
};

// Copies the pixels of a sample as an engine does. What is copied and found good must be right.
Copied copied(const CachedSource& cached, const CountedSource& source, uint64_t number,
              SourceScratch& scratch) {
  const FetchedSample sample = cached.fetch_unchecked(number, scratch);
  const auto expected = source.expected(number);
  REQUIRE(sample.bytes.size() == expected.size());
  std::vector<uint8_t> out(expected.size() - kHeadBytes);
  const bool good = sample.copy(sample.bytes.subspan(kHeadBytes), out.data(), scratch.pixels);
  if (good) REQUIRE(std::equal(out.begin(), out.end(), expected.begin() + kHeadBytes));
  return {good, sample.mapped != nullptr};
}

TEST_CASE("hits are copied out of the mapped file as they are read by position") {
  const CacheFiles files;
  const auto source = std::make_shared<CountedSource>(std::vector<uint64_t>{100, 12'400, 70'000, 1'100'000});
  const auto cache = files.open(*source);
  const CachedSource cached(source, cache);
  SourceScratch scratch;
  int mapped = 0;
  for (int round = 0; round < 40; ++round) {
    for (uint64_t i = 0; i < 4; ++i) {
      scratch.pixels = {};
      CHECK(copied(cached, *source, i, scratch).good);
      const Copied again = copied(cached, *source, i, scratch);  // its pixels are where they are expected
      CHECK(again.good);
      mapped += again.mapped ? 1 : 0;
      const auto whole = cached.fetch(i, scratch);
      CHECK(std::ranges::equal(whole, source->expected(i)));
      if (round > 0) CHECK(scratch.crc == crc32c(whole));
    }
  }
  CHECK(source->asked == 4);
#if defined(__linux__)
  CHECK(mapped > 100);
#endif
}

#if defined(__linux__)
TEST_CASE("where the next sample lies in the mapped file is told of those that are known to be whole") {
  const CacheFiles files;
  const auto source = std::make_shared<CountedSource>(std::vector<uint64_t>{100, 12'400, 70'000, 1'100'000});
  const auto cache = files.open(*source);
  const CachedSource cached(source, cache);
  SourceScratch scratch;
  for (uint64_t round = 0; round < 40; ++round) cached.fetch(round % 2, scratch);
  REQUIRE(scratch.mapped.on());
  const auto counts = cache->counts();
  for (const uint64_t i : {0U, 1U, 2U, 3U, 4U}) {
    cached.expect(i, scratch);
    const auto there = scratch.hint.mapped;
    if (i > 1) {
      CHECK(there.empty());
    } else {
      const auto expected = source->expected(i);
      REQUIRE(there.size() == expected.size() + kFrameBytes);
      CHECK(std::ranges::equal(there.subspan(kFrameHeaderBytes, expected.size()), expected));
    }
  }
  for (uint64_t round = 0; round < 40; ++round) cached.fetch(3, scratch);
  cached.expect(3, scratch);  // which is longer than what is mapped
  CHECK(scratch.hint.mapped.empty());
  SourceScratch elsewhere;  // of a thread that reads by position
  cached.expect(1, elsewhere);
  CHECK(elsewhere.hint.mapped.empty());
  CHECK(cache->counts().hits == counts.hits + 39);
}
#endif

TEST_CASE("a file cut short or changed under its mapping is misses, not a signal") {
  const CacheFiles files;
  const auto source = std::make_shared<CountedSource>(std::vector<uint64_t>(20, 12'400));
  const auto cache = files.open(*source);
  const CachedSource cached(source, cache);
  SourceScratch scratch;
  for (int i = 0; i < 60; ++i) copied(cached, *source, static_cast<uint64_t>(i) / 3 % 20, scratch);
  copied(cached, *source, 10, scratch);
  const FetchedSample begun = cached.fetch_unchecked(10, scratch);
#if defined(__linux__)
  REQUIRE(begun.mapped != nullptr);
#endif
  SUBCASE("cut short") {
    REQUIRE(::truncate(files.file.path().c_str(), 4096) == 0);
  }
  SUBCASE("changed") {
    const int file = opened(files.file.path());
    for (off_t i = 0; i < 20; ++i) REQUIRE(::pwrite(file, "changed", 7, i * 12'416 + 6'000) == 7);
    ::close(file);
  }
  std::vector<uint8_t> out(12'400 - kHeadBytes);
  CHECK(begun.copy(begun.bytes.subspan(kHeadBytes), out.data(), scratch.pixels) == (begun.mapped == nullptr));
  const int before = source->asked;
  for (uint64_t i = 0; i < 20; ++i) {
    copied(cached, *source, i, scratch);
    CHECK(std::ranges::equal(cached.fetch(i, scratch), source->expected(i)));
  }
  CHECK(source->asked == before + 20);
}

#if defined(__linux__)
TEST_CASE("samples that do not fit take no memory in a cache that lies there") {
  const auto source = std::make_shared<CountedSource>(std::vector<uint64_t>(200, 20'000));
  const tests::TemporaryFile counter{std::string(8, '\0')};
  const int file = ::memfd_create("cache", MFD_CLOEXEC);
  REQUIRE(file >= 0);
  REQUIRE(::ftruncate(file, 200 * 20'016) == 0);
  constexpr uint64_t kBudget = 1 << 20;
  const auto cache = std::make_shared<NodeCacheFile>(file, opened(counter.path()), kBudget, source->sizes());
  const CachedSource cached(source, cache);
  SourceScratch scratch;
  for (int round = 0; round < 5; ++round) {
    for (uint64_t i = 0; i < 200; ++i) {
      copied(cached, *source, i, scratch);
      CHECK(std::ranges::equal(cached.fetch(i, scratch), source->expected(i)));
    }
  }
  CHECK(cache->counts().hits > 200);
  CHECK(scratch.mapped.on());
  struct stat status{};
  REQUIRE(::fstat(file, &status) == 0);
  CHECK(static_cast<uint64_t>(status.st_blocks) * 512 <= kBudget);
}
#endif

TEST_CASE("sizes that no file can have are refused, and unknown samples are the source's matter") {
  const CacheFiles files;
  const auto source = std::make_shared<CountedSource>(std::vector<uint64_t>{~uint64_t{0} - 3});
  CHECK_THROWS_AS(files.open(*source), Error);
  const CountedSource none({});
  const auto cache = files.open(none);
  const auto more = std::make_shared<CountedSource>(std::vector<uint64_t>{100});
  CHECK(fetched(CachedSource(more, cache), 0) == more->expected(0));
}

}  // namespace
}  // namespace stoker

#include "core/sources/memory_cache.h"

#include <doctest/doctest.h>

#include <thread>

#include "tests/counted_source.h"

namespace stoker {
namespace {

using tests::CountedSource;
using tests::fetched;

TEST_CASE("a cache in memory asks the source once for each sample") {
  const auto source = std::make_shared<CountedSource>(std::vector<uint64_t>{10, 0, 5000, 70000});
  const auto cache = std::make_shared<MemoryCache>(1 << 20);
  const CachedSource cached(source, cache);
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < source->size(); ++i) CHECK(fetched(cached, i) == source->expected(i));
  }
  CHECK(source->asked == 4);
  const CacheCounts counts = cache->counts();
  CHECK(counts.hits == 8);
  CHECK(counts.misses == 4);
  CHECK_FALSE(counts.full);
  CHECK(counts.bytes > 75010);
  CHECK(counts.bytes < 75010 + 4 * 512 + 4096);
}

TEST_CASE("everything but the bytes is the source's") {
  const auto source = std::make_shared<CountedSource>(std::vector<uint64_t>{1, 1, 1, 1});
  const CachedSource cached(source, std::make_shared<MemoryCache>(1 << 20));
  SourceScratch scratch;
  std::string name;
  std::vector<LabelledBox> boxes;
  CHECK(cached.size() == 4);
  CHECK(cached.describe({3, kWholeImage}, {}, scratch, name).label == 3);
  CHECK(name == "sample 3");
  cached.append_boxes(2, {}, 7, scratch, boxes);
  CHECK(boxes.size() == 2);
  CHECK(boxes[1].label == 7);
  CHECK(cached.where(3).record == 3);
}

TEST_CASE("what came first stays, and the budget holds") {
  const auto source = std::make_shared<CountedSource>(std::vector<uint64_t>(10, 1000));
  const auto cache = std::make_shared<MemoryCache>(4 * 1300);
  const CachedSource cached(source, cache);
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < 10; ++i) CHECK(fetched(cached, i) == source->expected(i));
    CHECK(cache->counts().bytes <= cache->budget());
  }
  CHECK(cache->counts().hits == 4);
  CHECK(cache->counts().full);
  CHECK(source->asked == 16);
  for (uint64_t i = 0; i < 4; ++i) fetched(cached, i);
  CHECK(source->asked == 16);
}

TEST_CASE("a budget of nothing keeps nothing") {
  const auto source = std::make_shared<CountedSource>(std::vector<uint64_t>(3, 100));
  const auto cache = std::make_shared<MemoryCache>(1);
  const CachedSource cached(source, cache);
  for (uint64_t i = 0; i < 3; ++i) CHECK(fetched(cached, i) == source->expected(i));
  CHECK(cache->counts().bytes == 0);
  CHECK(cache->counts().full);
}

TEST_CASE("bytes of a hit outlive the cache and the next sample of another thread") {
  const auto source = std::make_shared<CountedSource>(std::vector<uint64_t>{100, 200});
  auto cache = std::make_shared<MemoryCache>(1 << 20);
  SourceScratch scratch;
  cache->fetch(0, *source, scratch);
  const auto bytes = cache->fetch(0, *source, scratch);
  cache.reset();
  CHECK(std::vector<uint8_t>(bytes.begin(), bytes.end()) == source->expected(0));
}

TEST_CASE("where the next sample lies in memory is told of those that are held, and counts nothing") {
  const auto source = std::make_shared<CountedSource>(std::vector<uint64_t>{1000, 2000, 3000});
  const auto cache = std::make_shared<MemoryCache>(2 * 2300);
  const CachedSource cached(source, cache);
  for (uint64_t i = 0; i < 3; ++i) fetched(cached, i);
  SourceScratch scratch;
  for (uint64_t i = 0; i < 4; ++i) {
    cached.expect(i, scratch);
    const auto there = scratch.hint.mapped;
    CHECK(std::vector<uint8_t>(there.begin(), there.end()) ==
          (i < 2 ? source->expected(i) : std::vector<uint8_t>()));
  }
  CHECK(cache->counts().hits == 0);
  CHECK(cache->counts().misses == 3);
  CHECK(source->asked == 3);
}

TEST_CASE("decoded samples are held with all that is known of them") {
  MemoryCache cache(1 << 20);
  const std::vector<uint8_t> pixels(2 * 3 * 3, 9);
  const StoredImage image{.bytes = pixels, .encoding = ImageEncoding::kRaw, .size = {3, 2}};
  const std::string name = "a name that is too long to be held in the string itself";
  CHECK(cache.find(7) == nullptr);
  CHECK(cache.offer(7, image, 4, name));
  CHECK_FALSE(cache.offer(7, image, 4, name));
  const uint64_t held = cache.counts().bytes;
  CHECK(held >= sizeof(CachedSample) + 18 + 56 + 2 * sizeof(LabelledBox));
  const auto entry = cache.find(7);
  REQUIRE(entry != nullptr);
  CHECK(entry->bytes == pixels);
  CHECK(entry->size == Extent{3, 2});
  CHECK(entry->label == 4);
  CHECK(entry->name == name);
  CHECK(cache.counts().bytes == held);
}

TEST_CASE("many threads share a cache in memory: right bytes, and never over the budget") {
  const auto source = std::make_shared<CountedSource>(std::vector<uint64_t>(200, 700));
  const auto cache = std::make_shared<MemoryCache>(100 * 1000);
  const CachedSource cached(source, cache);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 2000; ++i) {
        const uint64_t number = (i * 17 + t * 23) % 200;
        wrong += fetched(cached, number) != source->expected(number);
        wrong += cache->counts().bytes > cache->budget();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  const CacheCounts counts = cache->counts();
  CHECK(counts.hits + counts.misses == 16000);
  CHECK(counts.hits > 6000);
  CHECK(static_cast<int>(counts.misses) == source->asked);
}

}  // namespace
}  // namespace stoker

#include "core/sources/memory_cache.h"

#include <new>
#include <utility>

namespace stoker {
namespace {

// What an entry takes beside its buffers: the sample and its count of owners (128 bytes), the node of the
// table (48), its share of the buckets, of which a growing table has twice as many (up to 24), and the
// allocators' headers.
constexpr uint64_t kEntryBytes = 256;

// What an allocation takes. Large ones are mappings of their own, in whole pages.
constexpr uint64_t kHeaderBytes = 16;
constexpr uint64_t kAlignBytes = 16;
constexpr uint64_t kLargeBytes = 64 << 10;
constexpr uint64_t kPageBytes = 4096;

uint64_t allocated(uint64_t bytes) {
  if (bytes == 0) return 0;
  const uint64_t unit = bytes < kLargeBytes ? kAlignBytes : kPageBytes;
  return (bytes + kHeaderBytes + unit - 1) / unit * unit;
}

uint64_t cost_of_encoded(uint64_t bytes) {
  return kEntryBytes + allocated(bytes);
}

}  // namespace

uint64_t CachedSample::cost() const {
  const bool inside = name.capacity() == std::string().capacity();  // a short name lies in the string itself
  return cost_of_encoded(bytes.capacity()) + (inside ? 0 : allocated(name.capacity()));
}

bool MemoryCache::reserve(Contents& contents, uint64_t bytes) {
  uint64_t held = contents.held.load(std::memory_order_relaxed);
  do {
    if (bytes > budget_ || held > budget_ - bytes) {
      contents.full.store(true, std::memory_order_relaxed);
      return false;
    }
  } while (!contents.held.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
  return true;
}

std::shared_ptr<const CachedSample> MemoryCache::find(uint64_t number) {
  Shard& shard = contents_.get().shard_of(number);
  const std::lock_guard lock(shard.mutex);
  const auto entry = shard.samples.find(number);
  if (entry == shard.samples.end()) {
    ++shard.misses;
    return nullptr;
  }
  ++shard.hits;
  return entry->second;
}

bool MemoryCache::offer(uint64_t number, const StoredImage& image, int64_t label, const std::string& name) {
  Contents& contents = contents_.get();
  uint64_t reserved = 0;
  bool kept = false;
  try {
    auto sample =
        std::make_shared<const CachedSample>(CachedSample{.bytes = {image.bytes.begin(), image.bytes.end()},
                                                          .encoding = image.encoding,
                                                          .size = image.size,
                                                          .order = image.order,
                                                          .mode = image.mode,
                                                          .orientation = image.orientation,
                                                          .label = label,
                                                          .name = name});
    const uint64_t cost = sample->cost();
    if (!reserve(contents, cost)) return false;
    reserved = cost;
    Shard& shard = contents.shard_of(number);
    const std::lock_guard lock(shard.mutex);
    kept = shard.samples.try_emplace(number, std::move(sample)).second;
  } catch (const std::bad_alloc&) {  // there is less memory than the budget says; the sample is not kept
  }
  if (!kept) contents.held.fetch_sub(reserved, std::memory_order_relaxed);
  return kept;
}

std::span<const uint8_t> MemoryCache::fetch(uint64_t number, const SampleSource& source,
                                            SourceScratch& scratch) {
  if (auto entry = find(number)) {
    const std::span<const uint8_t> bytes = entry->bytes;
    scratch.held = std::move(entry);
    scratch.clock.mark(Stage::kRead);
    return bytes;
  }
  const auto bytes = source.fetch(number, scratch);
  const uint64_t cost = cost_of_encoded(bytes.size());
  Contents& contents = contents_.get();
  if (cost <= budget_ && contents.held.load(std::memory_order_relaxed) <= budget_ - cost) {
    offer(number, {.bytes = bytes}, -1, {});
  } else {
    contents.full.store(true, std::memory_order_relaxed);
  }
  return bytes;
}

bool MemoryCache::contains(uint64_t number) const {
  const Shard& shard = contents_.get().shard_of(number);
  const std::lock_guard lock(shard.mutex);
  return shard.samples.contains(number);
}

std::span<const uint8_t> MemoryCache::expect(uint64_t number, const SourceScratch&) const {
  const Shard& shard = contents_.get().shard_of(number);
  const std::lock_guard lock(shard.mutex);
  const auto entry = shard.samples.find(number);
  if (entry == shard.samples.end()) return {};
  return entry->second->bytes;
}

CacheCounts MemoryCache::counts() const {
  const Contents& contents = contents_.get();
  CacheCounts counts{.bytes = contents.held.load(std::memory_order_relaxed),
                     .full = contents.full.load(std::memory_order_relaxed)};
  for (const Shard& shard : contents.shards) {
    const std::lock_guard lock(shard.mutex);
    counts.hits += shard.hits;
    counts.misses += shard.misses;
  }
  return counts;
}

}  // namespace stoker

// Samples in memory under a budget of bytes, as they are stored or decoded.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/process.h"
#include "core/base/stored_image.h"
#include "core/sources/cached_source.h"

namespace stoker {

// What is held of one sample. An encoded one has `bytes` alone, exactly as the source gave them. A decoded
// one has in `bytes` its pixels, of `encoding` kRaw and of this size, order, mode and orientation, and beside
// them
// everything that a transform or a message needs, since the record is not there any more.
struct CachedSample {
  std::vector<uint8_t> bytes;
  ImageEncoding encoding = ImageEncoding::kFile;
  Extent size = {};
  TensorOrder order = TensorOrder::kHwc;
  PixelMode mode = PixelMode::kRgb;
  Orientation orientation = {};
  int64_t label = -1;
  std::string name = {};

  // Upper bound of the memory that holding it takes, all bookkeeping included.
  uint64_t cost() const;
};

// One object serves the samples of one source: it knows them by their numbers. In a forked process it begins
// empty.
class MemoryCache : public SampleCache {
 public:
  // `budget` in bytes; what is held never takes more.
  explicit MemoryCache(uint64_t budget) : budget_(budget) {}

  uint64_t budget() const { return budget_; }

  // Whether something was not kept because it would not have fitted.
  bool full() const { return contents_.get().full.load(std::memory_order_relaxed); }

  // The sample, or nothing; counts a hit or a miss. The sample stays as it is for as long as it is
  // referenced.
  std::shared_ptr<const CachedSample> find(uint64_t number);

  // Keeps a copy of a sample unless it does not fit, one of that number is there already, or there is less
  // memory than the budget says; whether it was kept. Throws nothing.
  bool offer(uint64_t number, const StoredImage& image, int64_t label, const std::string& name);

  std::span<const uint8_t> fetch(uint64_t number, const SampleSource& source,
                                 SourceScratch& scratch) override;

  bool contains(uint64_t number) const override;
  std::span<const uint8_t> expect(uint64_t number, const SourceScratch& scratch) const override;
  CacheCounts counts() const override;

 private:
  // The locks of different samples are mostly different ones, and none is held while bytes are copied.
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<uint64_t, std::shared_ptr<const CachedSample>> samples;
    uint64_t hits = 0;
    uint64_t misses = 0;
  };
  struct Contents {
    std::atomic<uint64_t> held{0};
    std::atomic<bool> full{false};
    std::array<Shard, 64> shards;

    Shard& shard_of(uint64_t number) { return shards[number % shards.size()]; }
  };

  bool reserve(Contents& contents, uint64_t bytes);

  uint64_t budget_;
  PerProcess<Contents> contents_;
};

}  // namespace stoker

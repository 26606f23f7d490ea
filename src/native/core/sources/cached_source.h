// A source of samples behind a cache: what was fetched once need not be fetched again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/sources/sample_source.h"

namespace stoker {

// What a cache has done since it was made. Counts of a running cache are each right, but not of one moment.
struct CacheCounts {
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t errors = 0;  // the system refused to read or to keep something; the source was read instead
  uint64_t bytes = 0;   // held now
  bool full = false;    // something was not kept because it would not have fitted
};

// Keeps the bytes of samples. Used by any number of threads at once.
//
// Policy of every cache here: the first to come stays, and nothing is evicted for something else. An epoch
// reads every sample once, so what has just been read is needed again later than anything that waits for its
// turn: to evict something for it is always a loss. A cache of the least recently used does just that; it
// hits less often than its share of the samples, and never when the order is the same in each epoch. Here the
// share that fits is the hit rate, in any order.
class SampleCache {
 public:
  SampleCache() = default;
  virtual ~SampleCache() = default;
  SampleCache(const SampleCache&) = delete;
  SampleCache& operator=(const SampleCache&) = delete;

  // The bytes of a sample of `source`, which is always the same one; from the cache, or else from the source.
  // Throws what the source throws, and nothing of its own: a cache that fails is a miss.
  virtual std::span<const uint8_t> fetch(uint64_t number, const SampleSource& source,
                                         SourceScratch& scratch) = 0;

  // The same, as SampleSource::fetch_unchecked(). What turns out not to be as it must be was counted as a
  // hit.
  virtual FetchedSample fetch_unchecked(uint64_t number, const SampleSource& source, SourceScratch& scratch) {
    return {fetch(number, source, scratch), std::nullopt};
  }

  // Whether fetch() will in all likelihood need no source. Cheap, and no hit or miss.
  virtual bool contains(uint64_t number) const = 0;

  // Where a sample that the calling thread will ask for next lies in memory, if that is known: to be
  // prefetched and never to be read. No hit or miss; throws nothing.
  virtual std::span<const uint8_t> expect(uint64_t, const SourceScratch&) const { return {}; }

  // Of a sample that it contains, as SampleSource::start_reading(); throws nothing.
  virtual uint64_t start_reading(uint64_t) const { return 0; }

  virtual CacheCounts counts() const = 0;
};

// `inner` must check what it reads: whatever it gives is kept, and found good from then on.
class CachedSource : public SampleSource {
 public:
  CachedSource(std::shared_ptr<const SampleSource> inner, std::shared_ptr<SampleCache> cache);

  uint64_t size() const override { return inner_->size(); }
  std::span<const uint8_t> fetch(uint64_t number, SourceScratch& scratch) const override;
  FetchedSample fetch_unchecked(uint64_t number, SourceScratch& scratch) const override;
  SourceSample describe(SampleId id, std::span<const uint8_t> bytes, SourceScratch& scratch,
                        std::string& name) const override;
  void append_boxes(uint64_t number, std::span<const uint8_t> bytes, int64_t label, SourceScratch& scratch,
                    std::vector<LabelledBox>& boxes) const override;
  void read_fields(uint64_t number, std::span<const uint8_t> bytes, const FieldSpec& spec,
                   RecordFields& fields) const override;
  SourceSample describe_with_fields(SampleId id, std::span<const uint8_t> bytes, const FieldSpec& spec,
                                    SourceScratch& scratch, std::string& name,
                                    RecordFields& fields) const override;
  uint64_t start_reading(uint64_t number) const override;
  RemoteSpan remote_span(uint64_t number) const override;
  void expect(uint64_t number, SourceScratch& scratch) const override;
  Where where(uint64_t number) const override { return inner_->where(number); }

 private:
  std::shared_ptr<const SampleSource> inner_;
  std::shared_ptr<SampleCache> cache_;
};

}  // namespace stoker

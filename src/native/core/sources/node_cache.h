// Samples in a file that the processes of a machine share: a cache for a source that is slow to read.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/sources/cached_source.h"
#include "core/sources/shared_budget.h"

namespace stoker {

// One file holds one source. Sample i has a range of its own, from the sum of the sizes and frames of those
// before it on, and there lies the frame of a TFRecord with its bytes. What was never written is a hole,
// which takes no space on the disk.
//
// A hit is a frame whose length and both checksums are right, so nothing has to be written down about what is
// there, nothing is locked to read, and no crash, torn write or damage can give wrong bytes: they are misses,
// and written anew. Two who write the same sample write the same bytes.
//
// The budget counts the blocks that a frame adds, before they are written. What is used is never more than
// what is counted, though it may be less: two who write neighbours at the same time both count the block that
// they share, and a process that was killed may have counted what it did not write.
class NodeCacheFile : public SampleCache {
 public:
  // Takes over both descriptors, also when it throws: of the file, open for reading and writing and
  // file_bytes() long, and of the number that SharedBudget counts with. `sizes` are the bytes of each sample;
  // one whose bytes are more or fewer than that is never kept. Throws kBadArgument when the sizes are more
  // than a file can have.
  NodeCacheFile(int file, int counter, uint64_t budget, const std::vector<uint64_t>& sizes);

  // Bytes of the file: all frames.
  uint64_t file_bytes() const { return starts_.back(); }

  std::span<const uint8_t> fetch(uint64_t number, const SampleSource& source,
                                 SourceScratch& scratch) override;

  FetchedSample fetch_unchecked(uint64_t number, const SampleSource& source, SourceScratch& scratch) override;

  // Whether its frame was begun, or with a file system that tells holes, whether its middle is written.
  bool contains(uint64_t number) const override;

  std::span<const uint8_t> expect(uint64_t number, const SourceScratch& scratch) const override;

  uint64_t start_reading(uint64_t number) const override;

  // `bytes` are those that the whole budget counts as used, by all files and processes.
  CacheCounts counts() const override;

  // The first thing that the system refused; empty if it has refused nothing. After a refusal nothing more is
  // written.
  std::string problem() const;

 private:
  // The payload of the frame that is there, kept by `scratch`; or nothing.
  std::span<const uint8_t> read(uint64_t number, SourceScratch& scratch);
  // The frame in memory, if it is there and may be read so.
  std::span<const uint8_t> mapped(uint64_t number, SourceScratch& scratch) const;
  bool may_be_mapped(uint64_t number) const;
  RecordExtent extent(uint64_t number) const {
    return {starts_[number], starts_[number + 1] - starts_[number]};
  }
  void keep(uint64_t number, std::span<const uint8_t> bytes);
  bool write(uint64_t number, std::span<const uint8_t> bytes);
  // The most that writing a frame can add to what the file takes on the disk.
  uint64_t cost(uint64_t number) const;
  // Whether the block there is known to be written already, so that no frame adds it any more.
  bool is_written(uint64_t block) const;
  void set_whole(uint64_t number);
  void fail(const std::string& problem);

  RandomAccessFile file_;
  SharedBudget budget_;
  uint64_t block_bytes_;
  bool tells_holes_;
  std::vector<uint64_t> starts_;  // of each frame, and the end of the last
  // A bit for each sample whose whole frame this object has read or written. Only these are read through the
  // mapping: reading a hole of a file in memory (tmpfs) would take memory for it.
  std::vector<std::atomic<uint64_t>> whole_;
  std::atomic<uint64_t> hits_{0};
  std::atomic<uint64_t> misses_{0};
  std::atomic<uint64_t> errors_{0};
  std::atomic<bool> full_{false};
  std::atomic<bool> broken_{false};
  mutable std::mutex mutex_;
  std::string problem_;
};

}  // namespace stoker

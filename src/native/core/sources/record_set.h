// Random access to the records of many shards.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/shards/cached_table.h"
#include "core/shards/open_files.h"
#include "core/shards/shard_index.h"
#include "core/shards/tfrecord.h"
#include "core/sources/sample_source.h"

namespace stoker {

// Indexes read from files are kept up to this many bytes: 32 million records, at four bytes each. Others are
// read again whenever a record of theirs is asked for, which takes some 0.3 ms for 10,000 records.
inline constexpr uint64_t kIndexBytes = uint64_t{128} << 20;

// Of sets up to this size, open_listed() reads every index.
inline constexpr uint64_t kEagerRecords = uint64_t{1} << 22;

// Records 0..size()-1 over all shards, in the order the shards were added. add() first, then read from any
// thread.
class RecordSet {
 public:
  // At most `max_open` shards are open at a time, and `index_bytes` of indexes kept.
  explicit RecordSet(size_t max_open = most_open_files(), uint64_t index_bytes = kIndexBytes)
      : files_(max_open), indexes_(index_bytes) {}

  // `name` is what messages and where() call the shard; its path when empty.
  void add(std::string path, std::vector<RecordExtent> extents, std::string name = {});

  // A shard whose index is read when it is needed for the first time.
  void add_listed(ListedShard shard);

  // From now on the shards are files of remote storage, and their paths are names. Before open_listed().
  void set_remote(RemoteFiles files) {
    check_numbers(files);
    remote_ = std::move(files);
  }

  // Looks whether the listed shards are there with the length that is listed (of remote ones the caller must
  // know that), and an index that can be theirs; reads these indexes, unless they are many. On `threads`
  // threads. Returns the others: set_extents() must be called for each of them before the set is used.
  std::vector<size_t> open_listed(size_t threads);

  // Where the records of a listed shard lie. Throws kBadArgument when they are not as many as listed.
  void set_extents(size_t shard, std::vector<RecordExtent> extents);

  uint64_t size() const { return starts_.back(); }

  // The payload of a record, kept by `scratch`. Throws as read_record(), and as ShardIndex::read; of
  // remote shards as RemoteReader::take. Remote bytes whose checksum is wrong are read once more.
  std::span<const uint8_t> read(uint64_t index, PayloadCheck check, SourceScratch& scratch) const;

  // The same of a record that is mostly pixels, checked: copied from a mapped shard where that can be.
  std::span<const uint8_t> read_pixels(uint64_t index, SourceScratch& scratch) const;

  // The same, but the payload is not checked, and pixels in it may be left out: see
  // SampleSource::fetch_unchecked().
  FetchedSample read_unchecked(uint64_t index, SourceScratch& scratch) const;

  // Has the system begin to read a record from its disk; how many bytes. Throws as ShardIndex::read, and kIo.
  uint64_t start_reading(uint64_t index) const;

  // See SampleSource::expect().
  void expect(uint64_t index, SourceScratch& scratch) const;

  // The frame of a record, if shards are remote.
  RemoteSpan remote_span(uint64_t index) const;

  // Where a record lies, for messages.
  Where where(uint64_t index) const;

 private:
  struct Position {
    size_t shard;
    size_t record;
    RecordExtent extent;
  };

  void append(std::string path, std::string name, uint64_t records);
  Position locate(uint64_t index) const;
  Position locate(uint64_t index, const PrefetchHint& known) const;
  Where where(const Position& position) const;
  RemoteSpan remote_span(const Position& position) const;
  std::span<const uint8_t> read_local(const Position& position, PayloadCheck check,
                                      SourceScratch& scratch) const;
  std::optional<FetchedSample> read_mapped(const Position& position, SourceScratch& scratch) const;
  std::span<const uint8_t> read_remote(const Position& position, PayloadCheck check,
                                       SourceScratch& scratch) const;
  std::shared_ptr<const ShardIndex> index_of(size_t shard) const;
  bool as_listed(size_t shard, bool eager) const;

  OpenFiles files_;
  RemoteFiles remote_;  // without a reader: shards are files of this machine
  std::vector<uint64_t> starts_{0};
  std::vector<std::shared_ptr<const ShardIndex>>
      given_;                        // of each shard; nothing: it has an index to be read
  std::vector<ListedShard> listed_;  // of each shard
  CachedTable<ShardIndex> indexes_;
};

}  // namespace stoker

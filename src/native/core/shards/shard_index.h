// Where the records of one shard lie.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/shards/tfrecord.h"

namespace stoker {

// A shard that a manifest lists, with the text index that was written for it.
struct ListedShard {
  std::string path;
  std::string index;  // path of the index
  uint64_t records = 0;
  uint64_t bytes = 0;
};

// Of any rows as they are; of an index, four bytes a record, or eight in shards of 4 GiB and more. Immutable.
class ShardIndex {
 public:
  explicit ShardIndex(std::vector<RecordExtent> rows) : rows_(std::move(rows)) {}

  // Reads the index of a shard, lines of `offset size`, each the frame behind the one before. Throws
  // kIndexMismatch unless they are as many as listed and cover the shard from its first byte to its last, and
  // kIo. Takes no more memory than the listed number of records may need.
  static ShardIndex read(const ListedShard& shard);

  size_t size() const { return rows_.size() + narrow_.size() + wide_.size(); }

  // Record i < size().
  RecordExtent operator[](size_t i) const;

  // Memory that it takes.
  uint64_t bytes() const;

 private:
  ShardIndex() = default;

  // Only one of these is used. The last two hold where each record begins; it ends where the next begins.
  std::vector<RecordExtent> rows_;
  std::vector<uint32_t> narrow_;
  std::vector<uint64_t> wide_;
  uint64_t end_ = 0;  // of the last record
};

// Whether a file of that length may be the index of such a shard, so that it is worth reading.
bool may_be_index(uint64_t index_bytes, uint64_t records);

}  // namespace stoker

// Random access to the records of many shards.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/open_files.h"
#include "core/tfrecord.h"

namespace stoker {

// Records 0..size()-1 over all shards, in the order the shards were added. add() first, then read from any
// thread.
class RecordSet {
 public:
  // At most `max_open` shards are open at a time.
  explicit RecordSet(size_t max_open = 256) : files_(max_open) {}

  // `name` is what messages and where() call the shard; its path when empty.
  void add(std::string path, std::vector<RecordExtent> extents, std::string name = {});

  uint64_t size() const { return starts_.back(); }

  // The payload of a record, in `buffer`, which grows as needed. Throws as ShardFile::read_record.
  std::span<const uint8_t> read(uint64_t index, PayloadCheck check, std::vector<uint8_t>& buffer) const;

  // Where a record lies, for messages.
  Where where(uint64_t index) const;

 private:
  struct Place {
    size_t shard;
    size_t record;
  };

  Place locate(uint64_t index) const;

  OpenFiles files_;
  std::vector<std::vector<RecordExtent>> extents_;  // of each shard
  std::vector<uint64_t> starts_{0};
};

}  // namespace stoker

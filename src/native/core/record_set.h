// Random access to the records of many shards.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/tfrecord.h"

namespace stoker {

// Records 0..size()-1 over all shards, in the order the shards were added. add() first, then read from any
// thread.
class RecordSet {
 public:
  // At most `max_open` shards are open at a time.
  explicit RecordSet(size_t max_open = 256) : max_open_(max_open) {}

  void add(std::string path, std::vector<RecordExtent> extents);

  uint64_t size() const { return starts_.back(); }

  // The payload of a record, in `buffer`, which grows as needed. Throws as ShardFile::read_record.
  std::span<const uint8_t> read(uint64_t index, PayloadCheck check, std::vector<uint8_t>& buffer) const;

  // Where a record lies, for messages.
  Where where(uint64_t index) const;

 private:
  struct Shard {
    std::string path;
    std::vector<RecordExtent> extents;
  };
  struct Place {
    size_t shard;
    size_t record;
  };

  Place locate(uint64_t index) const;
  std::shared_ptr<const ShardFile> file(size_t shard) const;

  std::vector<Shard> shards_;
  std::vector<uint64_t> starts_{0};
  size_t max_open_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const ShardFile>> files_;
  mutable std::list<size_t> open_;  // the longest open first
};

}  // namespace stoker

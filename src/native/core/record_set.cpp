#include "core/record_set.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/errors.h"

namespace stoker {

void RecordSet::add(std::string path, std::vector<RecordExtent> extents) {
  starts_.push_back(starts_.back() + extents.size());
  shards_.push_back({std::move(path), std::move(extents)});
  files_.emplace_back();
}

RecordSet::Place RecordSet::locate(uint64_t index) const {
  if (index >= size()) {
    throw Error(ErrorCode::kBadArgument, "There is no record " + std::to_string(index) +
                                             "; the dataset has " + std::to_string(size()));
  }
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), index);
  const auto shard = static_cast<size_t>(after - starts_.begin()) - 1;
  return {shard, static_cast<size_t>(index - starts_[shard])};
}

std::shared_ptr<const ShardFile> RecordSet::file(size_t shard) const {
  const std::lock_guard lock(mutex_);
  if (!files_[shard]) {
    if (open_.size() >= max_open_) {  // readers that still use it keep it open until they are done
      files_[open_.front()].reset();
      open_.pop_front();
    }
    files_[shard] = std::make_shared<const ShardFile>(shards_[shard].path);
    open_.push_back(shard);
  }
  return files_[shard];
}

Where RecordSet::where(uint64_t index) const {
  const Place place = locate(index);
  const Shard& shard = shards_[place.shard];
  return {shard.path,
          static_cast<int64_t>(place.record),
          static_cast<int64_t>(shard.extents[place.record].offset),
          {}};
}

std::span<const uint8_t> RecordSet::read(uint64_t index, PayloadCheck check,
                                         std::vector<uint8_t>& buffer) const {
  const Place place = locate(index);
  const RecordExtent& extent = shards_[place.shard].extents[place.record];
  return file(place.shard)->read_record(extent, buffer, static_cast<int64_t>(place.record), check);
}

}  // namespace stoker

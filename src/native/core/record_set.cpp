#include "core/record_set.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/errors.h"

namespace stoker {

void RecordSet::add(std::string path, std::vector<RecordExtent> extents, std::string name) {
  files_.add(std::move(path), std::move(name));
  starts_.push_back(starts_.back() + extents.size());
  extents_.push_back(std::move(extents));
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

Where RecordSet::where(uint64_t index) const {
  const Place place = locate(index);
  return {files_.name(place.shard),
          static_cast<int64_t>(place.record),
          static_cast<int64_t>(extents_[place.shard][place.record].offset),
          {}};
}

std::span<const uint8_t> RecordSet::read(uint64_t index, PayloadCheck check,
                                         std::vector<uint8_t>& buffer) const {
  const Place place = locate(index);
  const RecordExtent& extent = extents_[place.shard][place.record];
  return files_.open(place.shard)->read_record(extent, buffer, static_cast<int64_t>(place.record), check);
}

}  // namespace stoker

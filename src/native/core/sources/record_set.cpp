#include "core/sources/record_set.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/sources/mapped_frame.h"
#include "core/threads/share_work.h"

namespace stoker {
namespace {

// Length of a regular file; nothing that any length equals for anything else.
uint64_t length_of(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return UINT64_MAX;
  return static_cast<uint64_t>(status.st_size);
}

}  // namespace

void RecordSet::append(std::string path, std::string name, uint64_t records) {
  if (records > UINT64_MAX - starts_.back()) {
    throw Error(ErrorCode::kBadArgument, path + " is said to have " + std::to_string(records) +
                                             " records, which are more than can be counted");
  }
  files_.add(std::move(path), std::move(name));
  indexes_.add();
  starts_.push_back(starts_.back() + records);
}

void RecordSet::add(std::string path, std::vector<RecordExtent> extents, std::string name) {
  append(std::move(path), std::move(name), extents.size());
  listed_.emplace_back();
  given_.push_back(std::make_shared<const ShardIndex>(std::move(extents)));
}

void RecordSet::add_listed(ListedShard shard) {
  append(shard.path, {}, shard.records);
  listed_.push_back(std::move(shard));
  given_.emplace_back();
}

void RecordSet::set_extents(size_t shard, std::vector<RecordExtent> extents) {
  if (shard >= listed_.size() || extents.size() != starts_[shard + 1] - starts_[shard]) {
    throw Error(ErrorCode::kBadArgument, "There is no shard " + std::to_string(shard) + " with " +
                                             std::to_string(extents.size()) + " records");
  }
  given_[shard] = std::make_shared<const ShardIndex>(std::move(extents));
}

bool RecordSet::as_listed(size_t shard, bool eager) const {
  const ListedShard& listed = listed_[shard];
  if (given_[shard]) return true;
  if (!remote_.reader && length_of(listed.path) != listed.bytes) return false;
  if (!eager) return may_be_index(length_of(listed.index), listed.records);
  try {
    static_cast<void>(index_of(shard));
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::vector<size_t> RecordSet::open_listed(size_t threads) {
  constexpr size_t kShardsAtOnce = 16;  // shards a thread takes at a time
  const size_t count = listed_.size();
  const bool eager = size() <= kEagerRecords;
  std::vector<uint8_t> good(count);
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t begin = next.fetch_add(kShardsAtOnce); begin < count; begin = next.fetch_add(kShardsAtOnce)) {
      for (size_t i = begin; i < std::min(begin + kShardsAtOnce, count); ++i)
        good[i] = as_listed(i, eager) ? 1 : 0;
    }
  };
  share_work(std::min(threads, (count + kShardsAtOnce - 1) / kShardsAtOnce), work);
  std::vector<size_t> others;
  for (size_t i = 0; i < count; ++i) {
    if (good[i] == 0) others.push_back(i);
  }
  return others;
}

std::shared_ptr<const ShardIndex> RecordSet::index_of(size_t shard) const {
  return indexes_.get(
      shard, [&] { return std::make_unique<const ShardIndex>(ShardIndex::read(listed_[shard])); },
      [](const ShardIndex& index) { return index.bytes(); });
}

RecordSet::Position RecordSet::locate(uint64_t index) const {
  if (index >= size()) {
    throw Error(ErrorCode::kBadArgument, "There is no record " + std::to_string(index) +
                                             "; the dataset has " + std::to_string(size()));
  }
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), index);
  const auto shard = static_cast<size_t>(after - starts_.begin()) - 1;
  const auto record = static_cast<size_t>(index - starts_[shard]);
  return {shard, record, given_[shard] ? (*given_[shard])[record] : (*index_of(shard))[record]};
}

RecordSet::Position RecordSet::locate(uint64_t index, const PrefetchHint& known) const {
  if (known.set != this || known.number != index) return locate(index);
  return {known.shard, known.record, known.extent};
}

Where RecordSet::where(const Position& position) const {
  return {files_.name(position.shard),
          static_cast<int64_t>(position.record),
          static_cast<int64_t>(position.extent.offset),
          {}};
}

Where RecordSet::where(uint64_t index) const {
  return where(locate(index));
}

uint64_t RecordSet::start_reading(uint64_t index) const {
  if (remote_.reader) return 0;
  const Position position = locate(index);
  return files_.open(position.shard)->start_reading(position.extent.offset, position.extent.size);
}

RemoteSpan RecordSet::remote_span(const Position& position) const {
  return {remote_.first + static_cast<int64_t>(position.shard), position.extent.offset, position.extent.size};
}

RemoteSpan RecordSet::remote_span(uint64_t index) const {
  return remote_.reader ? remote_span(locate(index)) : RemoteSpan{};
}

std::span<const uint8_t> RecordSet::read_local(const Position& position, PayloadCheck check,
                                               SourceScratch& scratch) const {
  const auto file = files_.open(position.shard);
  const FrameSite site = site_of(*file, position.extent, static_cast<int64_t>(position.record));
  const auto frame = read_frame(*file, position.extent, scratch.bytes, site);
  scratch.clock.mark(Stage::kRead);
  scratch.clock.count_bytes(frame.size());
  const auto payload = verify_frame(frame, site, check);
  if (check == PayloadCheck::kOn) scratch.clock.mark(Stage::kCheck);
  return payload;
}

std::span<const uint8_t> RecordSet::read_remote(const Position& position, PayloadCheck check,
                                                SourceScratch& scratch) const {
  const RemoteSpan wanted = remote_span(position);
  const FrameSite site{files_.name(position.shard), static_cast<int64_t>(position.record),
                       static_cast<int64_t>(position.extent.offset)};
  try {
    try {
      const auto frame = scratch.remote.take(remote_, wanted);
      scratch.clock.mark(Stage::kRemote);
      scratch.clock.count_bytes(frame.size());
      const auto payload = verify_frame(frame, site, check);
      if (check == PayloadCheck::kOn) scratch.clock.mark(Stage::kCheck);
      return payload;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCorruptRecord) throw;
    }
    // A network, or something between, may have changed the bytes on their way.
    return verify_frame(scratch.remote.take_again(remote_, wanted), site, check);
  } catch (const Error& error) {
    if (!error.where().path.empty()) throw;
    throw Error(error.code(), error.what(), where(position), error.system_errno());
  }
}

std::span<const uint8_t> RecordSet::read(uint64_t index, PayloadCheck check, SourceScratch& scratch) const {
  const Position position = locate(index);
  if (remote_.reader) return read_remote(position, check, scratch);
  return read_local(position, check, scratch);
}

std::span<const uint8_t> RecordSet::read_pixels(uint64_t index, SourceScratch& scratch) const {
  if (!remote_.reader && scratch.mapped.now()) {
    const Position position = locate(index);
    const auto file = files_.open(position.shard);
    const auto payload = copy_mapped(frame_in(file->mapped(), position.extent), scratch.bytes);
    if (payload.data() != nullptr) {
      scratch.clock.mark(Stage::kRead);
      scratch.clock.count_bytes(position.extent.size);
      return payload;
    }
  }
  return read(index, PayloadCheck::kOn, scratch);
}

std::optional<FetchedSample> RecordSet::read_mapped(const Position& position, SourceScratch& scratch) const {
  if (position.extent.size > kMostMappedFrame || !scratch.mapped.now()) return std::nullopt;
  auto file = files_.open(position.shard);
  const auto fetched = fetch_mapped(frame_in(file->mapped(), position.extent), scratch);
  if (fetched && fetched->mapped != nullptr) scratch.held = std::move(file);
  return fetched;
}

void RecordSet::expect(uint64_t index, SourceScratch& scratch) const {
  scratch.hint = {};
  if (remote_.reader || !scratch.mapped.on()) return;
  try {
    const Position position = locate(index);
    scratch.hint = {this, index, position.shard, position.record, position.extent};
    if (position.extent.size > kMostMappedFrame) return;
    scratch.hint.mapped = frame_in(files_.open(position.shard)->mapped(), position.extent);
  } catch (const std::exception&) {  // reading it says what is wrong
  }
}

FetchedSample RecordSet::read_unchecked(uint64_t index, SourceScratch& scratch) const {
  const Position position = locate(index, scratch.hint);
  if (!remote_.reader) {
    if (const auto fetched = read_mapped(position, scratch)) return *fetched;
  }
  const auto payload = remote_.reader ? read_remote(position, PayloadCheck::kOff, scratch)
                                      : read_local(position, PayloadCheck::kOff, scratch);
  return {.bytes = payload, .crc = stated_crc(payload)};
}

}  // namespace stoker

// Indexes of shards that may lie: an index is refused or covers its shard frame by frame, and whatever is
// read through one is a payload with the checksum of its frame, or an error; from files of this machine and
// from a storage that answers what it likes.
#include "core/sources/record_set.h"

#include <algorithm>
#include <optional>

#include "core/base/random_access_file.h"
#include "core/shards/crc32c.h"
#include "core/sources/record_scan.h"
#include "fuzz/input.h"
#include "fuzz/invariant.h"
#include "fuzz/memory_file.h"

namespace {

using stoker::fuzz::MemoryFile;
using stoker::fuzz::require;

constexpr uint64_t kWide = uint64_t{1} << 33;  // shards of 4 GiB and more are kept in another form

void check_tiles(const stoker::ShardIndex& index, const stoker::ListedShard& shard) {
  uint64_t at = 0;
  require(index.size() == shard.records);
  for (size_t i = 0; i < index.size(); ++i) {
    require(index[i].offset == at && index[i].size >= stoker::kFrameBytes);
    at += index[i].size;
  }
  require(at == shard.bytes);
  require(index.bytes() <= sizeof index + 8 * shard.records);
}

// The half in the middle as if it were pixels, which soon come out of the mapped shard.
void check_unchecked(const stoker::RecordSet& records, uint64_t number, const std::vector<uint8_t>& whole,
                     stoker::SourceScratch& scratch) {
  const auto fetched = records.read_unchecked(number, scratch);
  require(fetched.bytes.size() == whole.size() && fetched.crc == stoker::crc32c(whole));
  const size_t begin = whole.size() / 4, size = whole.size() / 2;
  std::vector<uint8_t> out(size);
  const bool good = fetched.copy(fetched.bytes.subspan(begin, size), out.data(), scratch.pixels);
  require(good || fetched.mapped != nullptr);
  require(!good || std::equal(out.begin(), out.end(), whole.begin() + static_cast<ptrdiff_t>(begin)));
}

std::optional<std::vector<uint8_t>> read(const stoker::RecordSet& records, uint64_t number) {
  std::optional<std::vector<uint8_t>> bytes;
  stoker::SourceScratch scratch;
  stoker::fuzz::succeeds([&] {
    const auto payload = records.read(number, stoker::PayloadCheck::kOn, scratch);
    bytes.emplace(payload.begin(), payload.end());
    for (uint32_t i = 0; i < stoker::kMappedAt + 2; ++i) check_unchecked(records, number, *bytes, scratch);
  });
  return bytes;
}

void read_all(const stoker::RecordSet& records) {
  for (uint64_t i = 0; i < std::min<uint64_t>(records.size(), 8); ++i) read(records, i);
  stoker::fuzz::succeeds([&] { records.where(records.size() / 2); });
  require(!read(records, records.size()));
  std::vector<uint32_t> counts(std::min<uint64_t>(records.size(), 8));
  stoker::fuzz::succeeds([&] { stoker::count_values(records, "k", 0, 1, nullptr, counts); });
  std::vector<int64_t> labels(counts.size());
  const stoker::LabelKeys keys{"k", stoker::LabelEncoding::kOneHot, 0};
  stoker::fuzz::succeeds([&] { stoker::read_labels(records, keys, 0, 1, nullptr, labels); });
}

// A storage that sends a part of `bytes`, whatever was asked for, or refuses.
class Liar {
 public:
  Liar(std::vector<uint8_t> bytes, uint8_t choice) : bytes_(std::move(bytes)), choice_(choice) {}

  std::vector<uint8_t> operator()(const stoker::RemoteSpan& span) {
    if (turn_++ % 4 == (choice_ & 3)) throw stoker::Error(stoker::ErrorCode::kStorage, "refused");
    const uint64_t begin = std::min<uint64_t>(span.offset + (choice_ >> 2 & 1), bytes_.size());
    const uint64_t end = begin + std::min<uint64_t>(span.length + (choice_ >> 3 & 1), bytes_.size() - begin);
    return {bytes_.begin() + static_cast<std::ptrdiff_t>(begin),
            bytes_.begin() + static_cast<std::ptrdiff_t>(end)};
  }

 private:
  std::vector<uint8_t> bytes_;
  uint8_t choice_;
  unsigned turn_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stoker::fuzz::Input input(data, size);
  const uint8_t choice = input.byte(), lie = input.byte();
  const uint64_t records = input.byte(), claimed = input.word();
  const std::vector<uint8_t> rest = input.rest();
  const auto cut = std::find(rest.begin(), rest.end(), '#');  // index '#' shard
  const MemoryFile index({rest.begin(), cut});
  const std::vector<uint8_t> frames(cut == rest.end() ? cut : cut + 1, rest.end());
  const MemoryFile shard(frames);
  if ((choice & 1) != 0) shard.resize((choice & 2) != 0 ? kWide + claimed : claimed);

  const stoker::RandomAccessFile file(shard.path());
  const stoker::ListedShard listed{shard.path(), index.path(), records, file.size()};
  const bool sound = stoker::fuzz::succeeds([&] { check_tiles(stoker::ShardIndex::read(listed), listed); });
  stoker::RecordSet set;
  set.add_listed(listed);
  set.add_listed({shard.path(), index.path(), records + (choice >> 2 & 1), file.size()});
  const auto others = set.open_listed(1);
  require((std::find(others.begin(), others.end(), 0) == others.end()) == sound);
  if (file.size() >= kWide) return 0;  // its records are holes of gigabytes
  read_all(set);

  stoker::RecordSet remote;
  remote.set_remote({std::make_shared<stoker::DirectReader>(Liar(frames, lie)), 0});
  remote.add_listed(listed);
  read_all(remote);
  return 0;
}

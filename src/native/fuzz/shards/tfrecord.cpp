// Any bytes as a shard: a scan ends in extents that tile the file or in an error of ours, whatever a checked
// scan accepts can be read record by record, and a record read anywhere else has its checksum or is an error.
#include "core/shards/tfrecord.h"

#include <algorithm>
#include <optional>

#include "core/base/random_access_file.h"
#include "core/shards/crc32c.h"
#include "fuzz/invariant.h"
#include "fuzz/memory_file.h"

namespace {

using stoker::PayloadCheck;
using stoker::fuzz::MemoryFile;
using stoker::fuzz::require;

std::optional<std::vector<stoker::RecordExtent>> scan(const stoker::RandomAccessFile& shard,
                                                      PayloadCheck check) {
  try {
    return stoker::scan_shard(shard, check);
  } catch (const stoker::Error&) {
    return std::nullopt;
  }
}

// A checksum is a lock that random bytes do not open. So the first byte says how many leading frames get good
// ones, and the fuzzer decides their lengths.
std::vector<uint8_t> with_good_checksums(std::span<const uint8_t> data) {
  std::vector<uint8_t> shard;
  size_t frames = data[0] % 8;
  data = data.subspan(1);
  for (; frames != 0 && data.size() >= 2; --frames) {
    const size_t size = std::min<size_t>(data[0] * size_t{data[1]}, data.size() - 2);
    const size_t start = shard.size();
    shard.resize(start + size + stoker::kFrameBytes);
    stoker::write_frame(data.subspan(2, size), std::span(shard).subspan(start));
    data = data.subspan(2 + size);
  }
  if (!data.empty() && (data[0] & 1) != 0) {  // a sound header with any length at all
    uint64_t claimed = 0;
    for (size_t i = 1; i < std::min<size_t>(9, data.size()); ++i) claimed = claimed << 8 | data[i];
    const auto header = stoker::frame_header(claimed);
    shard.insert(shard.end(), header.begin(), header.end());
  }
  shard.insert(shard.end(), data.begin(), data.end());
  return shard;
}

// The length that a header at `at` claims, whether or not it is one.
uint64_t claimed(std::span<const uint8_t> bytes, uint64_t at) {
  uint64_t length = 0;
  for (uint64_t i = std::min<uint64_t>(bytes.size(), at + 8); i > at; --i)
    length = length << 8 | bytes[i - 1];
  return length;
}

// As a stale or damaged index would ask for them.
void read_anywhere(const stoker::RandomAccessFile& shard, std::span<const uint8_t> bytes) {
  stoker::ScratchBytes buffer;
  for (uint64_t at = 0; at < std::min<uint64_t>(bytes.size(), 8); ++at) {
    const uint64_t length = claimed(bytes, at);
    for (const uint64_t size : {length + stoker::kFrameBytes, length, length & 0xFF}) {
      stoker::fuzz::succeeds([&] {
        const auto payload = stoker::read_record(shard, {at, size}, buffer);
        require(payload.size() == size - stoker::kFrameBytes);
        require(std::ranges::equal(payload, bytes.subspan(at + stoker::kFrameHeaderBytes, payload.size())));
        require(stoker::crc32c(payload) == stoker::stated_crc(payload));
      });
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::vector<uint8_t> bytes = with_good_checksums({data, size});
  const MemoryFile file(bytes);
  const stoker::RandomAccessFile shard(file.path());
  read_anywhere(shard, bytes);
  const auto checked = scan(shard, PayloadCheck::kOn);
  const auto unchecked = scan(shard, PayloadCheck::kOff);
  if (unchecked) {
    uint64_t at = 0;
    for (const auto& extent : *unchecked) {
      require(extent.offset == at && extent.size >= stoker::kFrameBytes);
      at += extent.size;
    }
    require(at == bytes.size());
  }
  if (checked) {
    require(checked == unchecked);
    const auto summed = stoker::scan_and_sum(shard);
    require(summed.extents == *checked && summed.crc == stoker::crc32c(bytes));
    stoker::ScratchBytes buffer;
    for (const auto& extent : *checked) {
      require(stoker::read_record(shard, extent, buffer).size() == extent.size - stoker::kFrameBytes);
    }
  }
  return 0;
}

// Any bytes as a shard: a scan ends in extents that tile the file or in an error of ours, and whatever a
// checked scan accepts can be read record by record.
#include "core/tfrecord.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "core/crc32c.h"

namespace {

using stoker::PayloadCheck;

// A file that lives in memory, so that the scanner's own reads are what is tried.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const uint8_t> bytes) : descriptor_(::memfd_create("shard", MFD_CLOEXEC)) {
    if (descriptor_ < 0 ||
        ::write(descriptor_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
      std::abort();
    }
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

std::optional<std::vector<stoker::RecordExtent>> scan(const stoker::ShardFile& shard, PayloadCheck check) {
  try {
    return stoker::scan_shard(shard, check);
  } catch (const stoker::Error&) {
    return std::nullopt;
  }
}

void require(bool law) {
  if (!law) std::abort();
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::vector<uint8_t> bytes = with_good_checksums({data, size});
  const MemoryFile file(bytes);
  const stoker::ShardFile shard(file.path());
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
    std::vector<uint8_t> buffer;
    for (const auto& extent : *checked) {
      require(shard.read_record(extent, buffer).size() == extent.size - stoker::kFrameBytes);
    }
  }
  return 0;
}

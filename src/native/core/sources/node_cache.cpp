#include "core/sources/node_cache.h"

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <limits>
#include <system_error>

#include "core/base/errors.h"
#include "core/shards/tfrecord.h"
#include "core/sources/mapped_frame.h"

namespace stoker {
namespace {

constexpr uint64_t kLongFrame = uint64_t{1} << 20;
constexpr uint64_t kLeastBlock = 4096;
constexpr uint64_t kMostBlock = uint64_t{4} << 20;

constexpr uint64_t kBits = 64;  // of a word

// A file of many holes needs space to record where they are: ext4 takes 12 bytes for each piece, in blocks
// that are at least half full, and other file systems take about as much.
constexpr uint64_t kPieceBytes = 64;

uint64_t block_bytes(int descriptor) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0 || status.st_blksize <= 0) return kLeastBlock;
  const auto block = static_cast<uint64_t>(status.st_blksize);
  return std::has_single_bit(block) ? std::clamp(block, kLeastBlock, kMostBlock) : kLeastBlock;
}

// Whether the file system knows holes. One that does not says that the whole file is written, although it has
// fewer blocks than that needs.
bool tells_holes(int descriptor) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0 || status.st_size == 0) return false;
  const off_t hole = ::lseek(descriptor, 0, SEEK_HOLE);
  return hole >= 0 && (hole < status.st_size || int64_t{status.st_blocks} * 512 >= status.st_size);
}

std::vector<uint64_t> starts_of(const std::vector<uint64_t>& sizes) {
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  std::vector<uint64_t> starts{0};
  starts.reserve(sizes.size() + 1);
  for (const uint64_t size : sizes) {
    if (size > kMost - kFrameBytes || starts.back() > kMost - kFrameBytes - size) {
      throw Error(ErrorCode::kBadArgument, "The samples are more bytes than a file can have");
    }
    starts.push_back(starts.back() + size + kFrameBytes);
  }
  return starts;
}

// Whether these bytes are the whole frame of a payload that fills them.
bool is_frame(std::span<const uint8_t> bytes) {
  const auto payload = bytes.subspan(kFrameHeaderBytes, bytes.size() - kFrameBytes);
  return std::ranges::equal(frame_header(payload.size()), bytes.first(kFrameHeaderBytes)) &&
         std::ranges::equal(frame_footer(payload), bytes.last(kFrameFooterBytes));
}

iovec piece(std::span<const uint8_t> bytes) {
  return {const_cast<uint8_t*>(bytes.data()), bytes.size()};  // which writing leaves as they are
}

}  // namespace

NodeCacheFile::NodeCacheFile(int file, int counter, uint64_t budget, const std::vector<uint64_t>& sizes)
    : file_(file, "a node cache"),
      budget_(counter, budget),
      block_bytes_(block_bytes(file)),
      tells_holes_(tells_holes(file)),
      starts_(starts_of(sizes)),
      whole_((sizes.size() + kBits - 1) / kBits) {}

std::span<const uint8_t> NodeCacheFile::fetch(uint64_t number, const SampleSource& source,
                                              SourceScratch& scratch) {
  if (number >= starts_.size() - 1) return source.fetch(number, scratch);
  if (const auto cached = read(number, scratch); cached.data() != nullptr) {
    hits_.fetch_add(1, std::memory_order_relaxed);
    scratch.crc = stated_crc(cached);
    scratch.clock.mark(Stage::kRead);
    scratch.clock.count_bytes(cached.size());
    return cached;
  }
  misses_.fetch_add(1, std::memory_order_relaxed);
  const auto bytes = source.fetch(number, scratch);
  keep(number, bytes);
  return bytes;
}

FetchedSample NodeCacheFile::fetch_unchecked(uint64_t number, const SampleSource& source,
                                             SourceScratch& scratch) {
  if (const auto there = mapped(number, scratch); !there.empty()) {
    if (const auto fetched = fetch_mapped(there, scratch)) {
      hits_.fetch_add(1, std::memory_order_relaxed);
      return *fetched;
    }
  }
  return {fetch(number, source, scratch), std::nullopt};
}

std::span<const uint8_t> NodeCacheFile::mapped(uint64_t number, SourceScratch& scratch) const {
  if (!may_be_mapped(number) || !scratch.mapped.now()) return {};
  return frame_in(file_.mapped(), extent(number));
}

bool NodeCacheFile::may_be_mapped(uint64_t number) const {
  if (number >= starts_.size() - 1 || extent(number).size > kMostMappedFrame) return false;
  return (whole_[number / kBits].load(std::memory_order_relaxed) >> number % kBits & 1U) != 0;
}

std::span<const uint8_t> NodeCacheFile::expect(uint64_t number, const SourceScratch& scratch) const {
  if (!may_be_mapped(number) || !scratch.mapped.on()) return {};
  return frame_in(file_.mapped(), extent(number));
}

std::span<const uint8_t> NodeCacheFile::read(uint64_t number, SourceScratch& scratch) {
  const uint64_t size = starts_[number + 1] - starts_[number];
  if (const auto there = mapped(number, scratch); !there.empty()) {
    if (const auto copied = copy_mapped(there, scratch.bytes); copied.data() != nullptr) return copied;
  }
  if (size > kLongFrame && !contains(number)) return {};  // no memory for what was never written
  const std::span<uint8_t> frame(scratch.bytes.take(size), size);
  const auto got = read_at(file_.descriptor(), starts_[number], frame);
  if (!got) fail("it cannot be read: " + std::generic_category().message(errno));
  if (got != size || !is_frame(frame)) return {};
  set_whole(number);
  return frame.subspan(kFrameHeaderBytes, size - kFrameBytes);
}

bool NodeCacheFile::contains(uint64_t number) const {
  if (number >= starts_.size() - 1) return false;
  const uint64_t start = starts_[number], size = starts_[number + 1] - start;
  const uint64_t own = (start + block_bytes_ - 1) / block_bytes_;  // the first block that begins inside
  const bool has_own = own * block_bytes_ + block_bytes_ <= start + size;  // and ends there
  if (tells_holes_ && has_own) return is_written(own);
  std::array<uint8_t, kFrameHeaderBytes> header{};
  return read_at(file_.descriptor(), start, header) == header.size() &&
         header == frame_header(size - kFrameBytes);
}

uint64_t NodeCacheFile::start_reading(uint64_t number) const {
  if (number >= starts_.size() - 1) return 0;
  return stoker::start_reading(file_.descriptor(), starts_[number], starts_[number + 1] - starts_[number]);
}

bool NodeCacheFile::is_written(uint64_t block) const {
  const auto at = static_cast<off_t>(block * block_bytes_);
  return tells_holes_ && ::lseek(file_.descriptor(), at, SEEK_DATA) == at;
}

uint64_t NodeCacheFile::cost(uint64_t number) const {
  const uint64_t first = starts_[number] / block_bytes_, last = (starts_[number + 1] - 1) / block_bytes_;
  uint64_t blocks = last - first + 1;  // only the outer ones can be shared with neighbours
  if (is_written(first)) --blocks;
  if (last != first && is_written(last)) --blocks;
  return blocks * block_bytes_ + kPieceBytes;
}

void NodeCacheFile::keep(uint64_t number, std::span<const uint8_t> bytes) {
  if (bytes.size() + kFrameBytes != starts_[number + 1] - starts_[number]) return;
  if (broken_.load(std::memory_order_relaxed)) return;
  switch (budget_.take(cost(number))) {
    case SharedBudget::Answer::kTaken:
      if (!write(number, bytes)) fail("it cannot be written: " + std::generic_category().message(errno));
      break;
    case SharedBudget::Answer::kFull:
      full_.store(true, std::memory_order_relaxed);
      break;
    case SharedBudget::Answer::kBusy:
      break;  // kept next time
    case SharedBudget::Answer::kFailed:
      fail("the file that counts its bytes cannot be locked, read or written");
      break;
  }
}

bool NodeCacheFile::write(uint64_t number, std::span<const uint8_t> bytes) {
  const auto header = frame_header(bytes.size());
  const auto footer = frame_footer(bytes);
  const std::array<iovec, 3> pieces{piece(header), piece(bytes), piece(footer)};
  ssize_t put = 0;
  do {
    put = ::pwritev(file_.descriptor(), pieces.data(), static_cast<int>(pieces.size()),
                    static_cast<off_t>(starts_[number]));
  } while (put < 0 && errno == EINTR);
  if (put < 0) return false;
  if (static_cast<uint64_t>(put) == bytes.size() + kFrameBytes) {
    set_whole(number);
    return true;
  }
  errno = ENOSPC;  // what a disk says by taking less than it was given
  return false;
}

void NodeCacheFile::set_whole(uint64_t number) {
  whole_[number / kBits].fetch_or(uint64_t{1} << number % kBits, std::memory_order_relaxed);
}

void NodeCacheFile::fail(const std::string& problem) {
  errors_.fetch_add(1, std::memory_order_relaxed);
  broken_.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (problem_.empty()) problem_ = problem;
}

std::string NodeCacheFile::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

CacheCounts NodeCacheFile::counts() const {
  return {.hits = hits_.load(std::memory_order_relaxed),
          .misses = misses_.load(std::memory_order_relaxed),
          .errors = errors_.load(std::memory_order_relaxed),
          .bytes = budget_.used(),
          .full = full_.load(std::memory_order_relaxed)};
}

}  // namespace stoker

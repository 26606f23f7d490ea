#include "core/shards/tfrecord.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <optional>

#include "core/base/little_endian.h"
#include "core/shards/crc32c.h"

namespace stoker {
namespace {

constexpr size_t kLengthBytes = 8;

std::string describe(const FrameSite& site) {
  std::string text = site.record == kUnknown ? "the record" : "record " + std::to_string(site.record);
  if (site.offset != kUnknown) text += " at byte " + std::to_string(site.offset);
  if (!site.path.empty()) text += " of " + std::string(site.path);
  return text;
}

[[noreturn]] void fail(ErrorCode code, const FrameSite& site, const std::string& what) {
  throw Error(code, describe(site) + ": " + what,
              {.path = std::string(site.path), .record = site.record, .offset = site.offset, .source = {}});
}

void refuse_long(const FrameSite& site, uint64_t payload_bytes) {
  if (payload_bytes <= kMostPayloadBytes) return;
  fail(ErrorCode::kCorruptRecord, site,
       "it has " + std::to_string(payload_bytes) + " bytes of payload; a tf.train.Example can have " +
           std::to_string(kMostPayloadBytes));
}

// The payload length in a header, or nothing when its CRC says that it is damaged.
std::optional<uint64_t> checked_length(const uint8_t* header) {
  if (mask_crc(crc32c({header, kLengthBytes})) != load_le32(header + kLengthBytes)) return std::nullopt;
  return load_le64(header);
}

[[noreturn]] void fail_payload(const FrameSite& site, uint64_t bytes) {
  fail(ErrorCode::kCorruptRecord, site,
       "the checksum of its payload (" + std::to_string(bytes) +
           " bytes) does not match, so the shard is damaged; restore it or build it again");
}

}  // namespace

std::array<uint8_t, kFrameHeaderBytes> frame_header(uint64_t payload_bytes) {
  std::array<uint8_t, kFrameHeaderBytes> header;
  store_le64(payload_bytes, header.data());
  store_le32(mask_crc(crc32c({header.data(), kLengthBytes})), header.data() + kLengthBytes);
  return header;
}

std::array<uint8_t, kFrameFooterBytes> frame_footer(std::span<const uint8_t> payload) {
  std::array<uint8_t, kFrameFooterBytes> footer;
  store_le32(mask_crc(crc32c(payload)), footer.data());
  return footer;
}

void write_frame(std::span<const uint8_t> payload, std::span<uint8_t> out) {
  assert(out.size() == payload.size() + kFrameBytes);
  const auto header = frame_header(payload.size());
  const auto footer = frame_footer(payload);
  auto at = std::copy(header.begin(), header.end(), out.begin());
  at = std::copy(payload.begin(), payload.end(), at);
  std::copy(footer.begin(), footer.end(), at);
}

namespace {

// Throws if the header, which exists if the frame is long enough for it, is not that of a frame of this many
// bytes.
void verify_header(const uint8_t* header, uint64_t frame_bytes, const FrameSite& site) {
  if (frame_bytes < kFrameBytes) {
    fail(ErrorCode::kCorruptRecord, site,
         "its size is given as " + std::to_string(frame_bytes) + " bytes, and the smallest frame has " +
             std::to_string(kFrameBytes) + "; make the index of this shard anew");
  }
  const auto length = checked_length(header);
  if (!length) {
    fail(ErrorCode::kCorruptRecord, site,
         "the checksum of its length does not match: either the shard is damaged here, or the index does not "
         "belong to this shard; verify the shard, and make its index anew if it is whole");
  }
  if (*length != frame_bytes - kFrameBytes) {
    fail(ErrorCode::kCorruptRecord, site,
         "it has " + std::to_string(*length) + " bytes of payload where the index says " +
             std::to_string(frame_bytes - kFrameBytes) +
             ": the index does not belong to this shard; make it anew");
  }
  refuse_long(site, *length);
}

}  // namespace

std::span<const uint8_t> verify_frame(std::span<const uint8_t> frame, const FrameSite& site,
                                      PayloadCheck check) {
  verify_header(frame.data(), frame.size(), site);
  const auto payload = frame.subspan(kFrameHeaderBytes, frame.size() - kFrameBytes);
  if (check == PayloadCheck::kOn &&
      mask_crc(crc32c(payload)) != load_le32(frame.data() + kFrameHeaderBytes + payload.size())) {
    fail_payload(site, payload.size());
  }
  return payload;
}

uint32_t stated_crc(std::span<const uint8_t> payload) {
  return unmask_crc(load_le32(payload.data() + payload.size()));
}

FrameSite site_of(const RandomAccessFile& shard, const RecordExtent& extent, int64_t record) {
  const bool nameable = extent.offset <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  return {shard.name(), record, nameable ? static_cast<int64_t>(extent.offset) : kUnknown};
}

namespace {

constexpr uint64_t kLongFrame = uint64_t{1} << 20;

// What an index or a header claims is compared with what is there before memory is taken for it.
void refuse_claims(const RandomAccessFile& shard, const RecordExtent& extent, const FrameSite& at) {
  std::array<uint8_t, kFrameHeaderBytes> header{};
  if (shard.read_at(extent.offset, header) == header.size()) verify_header(header.data(), extent.size, at);
  if (shard.has_hole(extent.offset, extent.size)) {
    fail(ErrorCode::kCorruptRecord, at,
         "most of its " + std::to_string(extent.size) +
             " bytes were never written (a hole of a sparse file); restore the shard or build it again");
  }
}

}  // namespace

std::span<const uint8_t> read_frame(const RandomAccessFile& shard, const RecordExtent& extent,
                                    ScratchBytes& buffer, const FrameSite& at) {
  uint64_t end = shard.size();  // of the file; it also bounds the allocation, whatever the index claims
  if (extent.offset <= end && extent.size <= end - extent.offset) {
    if (extent.size > kLongFrame) refuse_claims(shard, extent, at);
    const std::span<uint8_t> frame(buffer.take(extent.size), extent.size);
    const size_t got = shard.read_at(extent.offset, frame);
    if (got == extent.size) return frame;
    end = extent.offset + got;  // it has been cut since it was opened
  }
  fail(ErrorCode::kTruncatedShard, at,
       "its frame of " + std::to_string(extent.size) + " bytes goes beyond the end of the file at byte " +
           std::to_string(end) + ": either the shard was cut short, or the index does not belong to it");
}

std::span<const uint8_t> read_record(const RandomAccessFile& shard, const RecordExtent& extent,
                                     ScratchBytes& buffer, int64_t record, PayloadCheck check) {
  const FrameSite at = site_of(shard, extent, record);
  return verify_frame(read_frame(shard, extent, buffer, at), at, check);
}

namespace {

// A read costs about 1 us, in which 12 KiB more could have been read from memory, and far more from a drive
// that is reading ahead. So only what is clearly longer is stepped over.
constexpr size_t kWindowBytes = size_t{256} << 10;  // stays in the second cache, where it is summed
constexpr size_t kSkipBytes = size_t{64} << 10;
constexpr size_t kPeekBytes = size_t{4} << 10;

// One pass over a shard through a window of fixed size.
class Scanner {
 public:
  // With `sum`, all bytes go into the checksum of the file; the check must be on.
  Scanner(const RandomAccessFile& shard, PayloadCheck check, bool sum)
      : shard_(shard),
        check_(check),
        sum_(sum),
        window_bytes_(static_cast<size_t>(std::min<uint64_t>(kWindowBytes, shard.size()))) {}

  ScannedShard run() {
    while (at_ < shard_.size()) {
      const RecordExtent extent{at_, kFrameBytes + length_of_next()};
      take(bytes(kFrameHeaderBytes, at_), kFrameHeaderBytes);
      if (check_ == PayloadCheck::kOn) {
        check_payload(extent);
      } else {
        skip_payload(extent);
      }
      extents_.push_back(extent);
    }
    return {std::move(extents_), crc_};
  }

 private:
  // Goes on behind bytes that are in the window.
  void take(const uint8_t* from, size_t count) {
    if (sum_) crc_ = crc32c_extend(crc_, {from, count});
    at_ += count;
  }

  FrameSite site(uint64_t offset) const {
    return {shard_.name(), static_cast<int64_t>(extents_.size()), static_cast<int64_t>(offset)};
  }

  uint64_t length_of_next() {
    const uint64_t left = shard_.size() - at_;
    if (left < kFrameHeaderBytes) {
      fail(ErrorCode::kTruncatedShard, site(at_),
           "the file ends after " + std::to_string(left) + " of the " + std::to_string(kFrameHeaderBytes) +
               " bytes of its header" + kCut);
    }
    const uint8_t* header = bytes(kFrameHeaderBytes, at_);
    const auto length = checked_length(header);
    if (!length) fail_length(header);
    if (left < kFrameBytes || *length > left - kFrameBytes) {
      fail(ErrorCode::kTruncatedShard, site(at_),
           "it has " + std::to_string(*length) + " bytes of payload, and the file ends " +
               std::to_string(left) + " bytes after the start of the record" + kCut);
    }
    refuse_long(site(at_), *length);
    return *length;
  }

  [[noreturn]] void fail_length(const uint8_t* header) const {
    const bool gzip = header[0] == 0x1f && header[1] == 0x8b;
    const bool zlib = header[0] == 0x78 && (header[0] * 256 + header[1]) % 31 == 0;
    std::string what = "the checksum of its length does not match";
    if (!extents_.empty()) {
      what += ", so the shard is damaged here; restore it or build it again";
    } else if (gzip || zlib) {
      what +=
          std::string("; the file looks ") + (gzip ? "GZIP" : "ZLIB") + "-compressed: decompress it first";
    } else {
      what += ": either this is not a TFRecord file, or its start is damaged";
    }
    fail(ErrorCode::kCorruptRecord, site(at_), what);
  }

  void check_payload(const RecordExtent& extent) {
    const uint64_t payload_bytes = extent.size - kFrameBytes;
    const bool join = payload_bytes >= kLeastJoined;
    uint32_t crc = 0;
    for (uint64_t left = payload_bytes; left != 0;) {
      const size_t piece = static_cast<size_t>(std::min<uint64_t>(left, available(extent.offset)));
      const uint8_t* from = window_ + (at_ - window_start_);
      crc = crc32c_extend(crc, {from, piece});
      if (sum_ && !join) crc_ = crc32c_extend(crc_, {from, piece});
      at_ += piece;
      left -= piece;
    }
    if (sum_ && join) crc_ = crc32c_join(crc_, crc, payload_bytes);
    const uint8_t* footer = bytes(kFrameFooterBytes, extent.offset);
    if (mask_crc(crc) != load_le32(footer)) fail_payload(site(extent.offset), payload_bytes);
    take(footer, kFrameFooterBytes);
  }

  void skip_payload(const RecordExtent& extent) {
    at_ = extent.offset + extent.size;
    refill_bytes_ = extent.size > kSkipBytes ? kPeekBytes : kWindowBytes;
  }

  // Bytes of the window from at_ on: at least one. `record_start` is for messages.
  size_t available(uint64_t record_start) {
    if (at_ < window_start_ || at_ >= window_start_ + filled_) refill(1, record_start);
    return static_cast<size_t>(window_start_ + filled_ - at_);
  }

  // The next `count` bytes in one piece; at_ stays. `count` is a few bytes that the file's size allows.
  const uint8_t* bytes(size_t count, uint64_t record_start) {
    if (at_ < window_start_ || at_ > window_start_ + filled_ || window_start_ + filled_ - at_ < count) {
      refill(count, record_start);
    }
    return window_ + (at_ - window_start_);
  }

  void refill(size_t least, uint64_t record_start) {
    constexpr size_t kLine = ScratchBytes::kAlignment;
    window_start_ = at_;
    window_ = memory_.take(window_bytes_ + kLine) + at_ % kLine;  // as far behind a line as in the file
    filled_ = shard_.read_at(at_, {window_, std::min(refill_bytes_, window_bytes_)});
    if (filled_ < least) {  // it had more bytes when it was opened
      fail(ErrorCode::kTruncatedShard, site(record_start),
           "the file was cut to " + std::to_string(at_ + filled_) + " bytes while it was read" + kCut);
    }
  }

  static constexpr const char* kCut = ": the shard was cut short; restore it or build it again";

  const RandomAccessFile& shard_;
  const PayloadCheck check_;
  const bool sum_;
  uint32_t crc_ = 0;  // of the file up to at_
  ScratchBytes memory_;
  uint8_t* window_ = nullptr;  // in memory_
  const size_t window_bytes_;
  uint64_t window_start_ = 0;  // in the file
  size_t filled_ = 0;
  size_t refill_bytes_ = kWindowBytes;
  uint64_t at_ = 0;  // in the file
  std::vector<RecordExtent> extents_;
};

}  // namespace

std::vector<RecordExtent> scan_shard(const RandomAccessFile& shard, PayloadCheck check) {
  return Scanner(shard, check, false).run().extents;
}

ScannedShard scan_and_sum(const RandomAccessFile& shard) {
  return Scanner(shard, PayloadCheck::kOn, true).run();
}

}  // namespace stoker

// TFRecord framing: finding, checking and writing the records of a shard.
//
// A frame is: length (8 bytes), masked CRC-32C of those 8 bytes (4), payload, masked CRC-32C of the payload
// (4); integers have their least significant byte first. A shard is frames one behind the other and nothing
// else (tensorflow/core/lib/io/record_writer.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "core/base/random_access_file.h"
#include "core/base/scratch_bytes.h"

namespace stoker {

inline constexpr size_t kFrameHeaderBytes = 12;
inline constexpr size_t kFrameFooterBytes = 4;
inline constexpr size_t kFrameBytes = kFrameHeaderBytes + kFrameFooterBytes;  // around every payload
// Of a message of protobuf, as an Example is one.
inline constexpr uint64_t kMostPayloadBytes = 0x7FFFFFFF;

// Where a frame lies in its file, in bytes. `size` counts header, payload and footer.
struct RecordExtent {
  uint64_t offset = 0;
  uint64_t size = 0;
  friend bool operator==(const RecordExtent&, const RecordExtent&) = default;
};

// Which frame a message is about. Borrows the path, so that making one costs nothing per record.
struct FrameSite {
  std::string_view path;
  int64_t record = kUnknown;  // zero-based, inside the file
  int64_t offset = kUnknown;  // of the frame, in bytes from the start of the file
};

enum class PayloadCheck { kOff, kOn };  // the CRC of the length is checked in either case

std::array<uint8_t, kFrameHeaderBytes> frame_header(uint64_t payload_bytes);
std::array<uint8_t, kFrameFooterBytes> frame_footer(std::span<const uint8_t> payload);

// Writes the frame of `payload` into `out`, which must have payload.size() + kFrameBytes bytes.
void write_frame(std::span<const uint8_t> payload, std::span<uint8_t> out);

// The payload inside `frame`, which holds one whole frame as an index or a scan located it.
// Throws kCorruptRecord when a CRC does not match, or the length is not that of the frame or more than
// kMostPayloadBytes.
std::span<const uint8_t> verify_frame(std::span<const uint8_t> frame, const FrameSite& site,
                                      PayloadCheck check = PayloadCheck::kOn);

// The CRC-32C that the payload of a frame must have, by the footer behind it.
uint32_t stated_crc(std::span<const uint8_t> payload);

// What messages say of a record.
FrameSite site_of(const RandomAccessFile& shard, const RecordExtent& extent, int64_t record);

// Reads the frame at `extent` into `buffer` and returns the payload inside it. `record` is for messages.
// Nothing is allocated for an extent that the file cannot hold; for a long one only once its header agrees,
// and its bytes are there. Throws kTruncatedShard when the file ends before the frame does, kCorruptRecord as
// verify_frame does or for a frame that was never written, and kIo.
std::span<const uint8_t> read_record(const RandomAccessFile& shard, const RecordExtent& extent,
                                     ScratchBytes& buffer, int64_t record = kUnknown,
                                     PayloadCheck check = PayloadCheck::kOn);

// The first half of that: the whole frame, in `buffer`, as it lies in the file. verify_frame() is the other.
std::span<const uint8_t> read_frame(const RandomAccessFile& shard, const RecordExtent& extent,
                                    ScratchBytes& buffer, const FrameSite& at);

struct ScannedShard {
  std::vector<RecordExtent> extents;
  uint32_t crc = 0;  // CRC-32C of the whole file
};

// The extents of all records of `shard`, in order, and the checksum of all its bytes, in the pass that
// verifies every payload. Throws as scan_shard().
ScannedShard scan_and_sum(const RandomAccessFile& shard);

// The extents of all records of `shard`, in order, in one pass with a fixed buffer. With the check off, long
// payloads are stepped over without being read. Throws kTruncatedShard, kCorruptRecord or kIo; the first two
// name the record they are about.
std::vector<RecordExtent> scan_shard(const RandomAccessFile& shard, PayloadCheck check = PayloadCheck::kOn);

}  // namespace stoker

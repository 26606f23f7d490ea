// CRC-32C (Castagnoli): the checksum of TFRecord frames and of shard files.
//
// The polynomial and the test vectors are those of RFC 3720, appendix B.4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stoker {

// The CRC of earlier bytes followed by `data`, where `crc` is the CRC of those earlier bytes (0 for none).
uint32_t crc32c_extend(uint32_t crc, std::span<const uint8_t> data);

inline uint32_t crc32c(std::span<const uint8_t> data) {
  return crc32c_extend(0, data);
}

// Copies `data` to `out` and returns the CRC of what was copied as crc32c_extend does, in one pass: the bytes
// go by once, and may change meanwhile.
uint32_t crc32c_copy(uint32_t crc, std::span<const uint8_t> data, uint8_t* out);

// Bytes that are worth a call of crc32c_copy(), where other work is done between two.
size_t crc32c_least_copy();

// The CRC of some bytes followed by `size` others, from the CRCs of both.
uint32_t crc32c_join(uint32_t crc, uint32_t others, uint64_t size);

// Bytes whose CRC takes longer than crc32c_join().
inline constexpr size_t kLeastJoined = 2048;

// TFRecord stores CRCs rotated and shifted by a constant, so that a CRC over bytes that hold CRCs stays a
// good check (tensorflow/core/lib/hash/crc32c.h names the constant).
inline constexpr uint32_t kCrcMaskDelta = 0xa282ead8U;

constexpr uint32_t mask_crc(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + kCrcMaskDelta;
}

constexpr uint32_t unmask_crc(uint32_t masked) {
  const uint32_t rotated = masked - kCrcMaskDelta;
  return (rotated >> 17) | (rotated << 15);
}

// All sets give the same checksums. Plain pointers: see core/base/kernels.h.
struct Crc32cKernels {
  const char* name;
  uint32_t (*extend)(uint32_t crc, const uint8_t* data, size_t size);
  // Does the same, and copies.
  uint32_t (*copy)(uint32_t crc, const uint8_t* data, size_t size, uint8_t* out);
  size_t least_copy;  // see crc32c_least_copy()
};
// Those this processor can run, the fastest first; tests run one body over all of them.
const std::vector<const Crc32cKernels*>& crc32c_kernels();

}  // namespace stoker

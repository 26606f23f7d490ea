// CRC-32C (Castagnoli): the checksum of TFRecord frames and of shard files.
//
// The polynomial and the test vectors are those of RFC 3720, appendix B.4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stoker {

// The CRC of earlier bytes followed by `data`, where `crc` is the CRC of those earlier bytes (0 for none).
uint32_t crc32c_extend(uint32_t crc, std::span<const uint8_t> data);

inline uint32_t crc32c(std::span<const uint8_t> data) {
  return crc32c_extend(0, data);
}

// Copies `data` to `out` and returns the CRC of it as crc32c_extend does, in one pass: the bytes go by once.
uint32_t crc32c_copy(uint32_t crc, std::span<const uint8_t> data, uint8_t* out);

// The CRC of some bytes followed by `size` others, from the CRCs of both. Takes about half a microsecond, so
// it pays for others that are longer than some ten thousand bytes.
uint32_t crc32c_join(uint32_t crc, uint32_t others, uint64_t size);

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

// Every implementation below computes this function. Plain pointers, because the kernel files are compiled
// for newer processors than the rest: an inline function of the standard library instantiated there could be
// the copy that the linker keeps for everybody.
using Crc32cFunction = uint32_t (*)(uint32_t crc, const uint8_t* data, size_t size);
using Crc32cCopyFunction = uint32_t (*)(uint32_t crc, const uint8_t* data, size_t size, uint8_t* out);

struct Crc32cImplementation {
  const char* name;
  Crc32cFunction extend;
  Crc32cCopyFunction copy;  // does the same, and copies
};

// The implementations that this processor can run, fastest first. `crc32c_extend` is the first of them.
std::span<const Crc32cImplementation> crc32c_implementations();

// Runs everywhere.
uint32_t crc32c_extend_portable(uint32_t crc, const uint8_t* data, size_t size);
uint32_t crc32c_copy_portable(uint32_t crc, const uint8_t* data, size_t size, uint8_t* out);
// Call these only on a processor that `crc32c_implementations` has found able to run them.
#if defined(__x86_64__)
uint32_t crc32c_extend_sse42(uint32_t crc, const uint8_t* data, size_t size);
uint32_t crc32c_copy_sse42(uint32_t crc, const uint8_t* data, size_t size, uint8_t* out);
#endif
#if defined(__aarch64__)
uint32_t crc32c_extend_arm64(uint32_t crc, const uint8_t* data, size_t size);
uint32_t crc32c_copy_arm64(uint32_t crc, const uint8_t* data, size_t size, uint8_t* out);
#endif

}  // namespace stoker

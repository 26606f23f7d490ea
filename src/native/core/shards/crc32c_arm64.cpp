// CRC-32C with the CRC instructions of ARMv8 (optional in 8.0, always there from 8.1).
#if defined(__aarch64__)
#include <arm_acle.h>

#include "core/shards/crc32c.h"
#include "core/shards/crc32c_streams.h"

namespace stoker {
namespace {

struct Armv8 {  // in the unnamed namespace, so that no code for this extension gets a name to share
  static uint32_t word(uint32_t state, uint64_t bytes) { return __crc32cd(state, bytes); }
  static uint32_t byte(uint32_t state, uint8_t byte) { return __crc32cb(state, byte); }
};

uint32_t extend(uint32_t crc, const uint8_t* data, size_t size) {
  return extend_streams<Armv8>(crc, data, size, OnlyFeed{});
}

uint32_t copy(uint32_t crc, const uint8_t* data, size_t size, uint8_t* out) {
  return extend_streams<Armv8>(crc, data, size, Copy{out});
}

}  // namespace

extern const Crc32cKernels kArmCrc32cKernels;
const Crc32cKernels kArmCrc32cKernels{"armv8 crc", extend, copy, kLeastCopy};

}  // namespace stoker
#endif

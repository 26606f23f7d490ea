// CRC-32C with the instruction that x86-64 processors have had since SSE4.2.
#if defined(__x86_64__)
#include <nmmintrin.h>

#include "core/shards/crc32c.h"
#include "core/shards/crc32c_streams.h"

namespace stoker {
namespace {

// Stores past the caches: what is copied is too much to stay in them, and is not read again soon.
struct Streamed {
  uint8_t* out;  // at a multiple of 8
  void word(size_t at, uint64_t bytes) const {
    _mm_stream_si64(reinterpret_cast<long long*>(out + at), static_cast<long long>(bytes));
  }
  void byte(size_t at, uint8_t byte) const { out[at] = byte; }
};

uint32_t extend(uint32_t crc, const uint8_t* data, size_t size) {
  return extend_streams<Sse42>(crc, data, size, OnlyFeed{});
}

uint32_t copy(uint32_t crc, const uint8_t* data, size_t size, uint8_t* out) {
  if (reinterpret_cast<uintptr_t>(out) % sizeof(uint64_t) != 0) {
    return extend_streams<Sse42>(crc, data, size, Copy{out});
  }
  const uint32_t extended = extend_streams<Sse42>(crc, data, size, Streamed{out});
  _mm_sfence();
  return extended;
}

}  // namespace

extern const Crc32cKernels kSse42Crc32cKernels;
const Crc32cKernels kSse42Crc32cKernels{"sse4.2", extend, copy, kLeastCopy};

}  // namespace stoker
#endif

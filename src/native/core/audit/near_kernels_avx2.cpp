// Looks up differing bits with AVX2, those of 32 hashes at once. Compiled with -mavx2 on x86-64, to nothing
// elsewhere.
#include "core/audit/near_kernels.h"

#ifdef __AVX2__
#include <immintrin.h>

#include <bit>

namespace stoker {
namespace {

// In how many bits each number of four differs from each other.
struct Counts {
  alignas(16) uint8_t of[16][16];
};

constexpr Counts kCounts = [] {
  Counts counts{};
  for (uint32_t a = 0; a < 16; ++a) {
    for (uint32_t b = 0; b < 16; ++b) counts.of[a][b] = static_cast<uint8_t>(std::popcount(a ^ b));
  }
  return counts;
}();

uint32_t next(uint64_t wanted, const HashBlock* blocks, size_t& at, size_t end, int distance) {
  __m256i tables[kBlockNibbles];
  for (size_t nibble = 0; nibble < kBlockNibbles; ++nibble) {
    const uint8_t* counts = kCounts.of[wanted >> (4 * nibble) & 15];
    tables[nibble] = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(counts)));
  }
  const __m256i most = _mm256_set1_epi8(static_cast<char>(distance));
  for (; at < end; ++at) {
    __m256i counts = _mm256_setzero_si256();
    for (size_t nibble = 0; nibble < kBlockNibbles; ++nibble) {
      const auto* values = reinterpret_cast<const __m256i*>(blocks[at].nibbles[nibble]);
      counts = _mm256_add_epi8(counts, _mm256_shuffle_epi8(tables[nibble], _mm256_load_si256(values)));
    }
    const __m256i is_near = _mm256_cmpeq_epi8(_mm256_min_epu8(counts, most), counts);
    const auto near = static_cast<uint32_t>(_mm256_movemask_epi8(is_near));
    if (near != 0) return near;
  }
  return 0;
}

}  // namespace

extern const NearKernels kAvx2NearKernels;
const NearKernels kAvx2NearKernels{"avx2", next};

}  // namespace stoker
#endif

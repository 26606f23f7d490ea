// CRC-32C with products of polynomials (VPCLMULQDQ), of registers of 32 bytes: in one stream, which
// processors fetch faster from memory than three ("Fast CRC Computation for Generic Polynomials Using
// PCLMULQDQ Instruction", V. Gopal et al., 2009).
#if defined(__x86_64__)
#include <immintrin.h>

#include "core/shards/crc32c.h"
#include "core/shards/crc32c_polynomial.h"
#include "core/shards/crc32c_streams.h"

namespace stoker {
namespace {

constexpr size_t kVector = sizeof(__m256i);
constexpr size_t kVectors = 4;  // as many products as are under way at a time, or more
constexpr size_t kStep = kVectors * kVector;

// Sixteen bytes act `bytes` bytes further on as the sum of two products does there: of their first eight
// bytes and one factor, of the others and another. A factor of 32 bits reads as one times x^32 in 64, and a
// product of 127 bits as one times x in 128; so both are x^33 too large, and made smaller: 5 bytes fewer, but
// x^7.
struct Factors {
  long long first;
  long long second;
};
template <size_t bytes>
constexpr Factors kMove = {
    crc32c_polynomial::multiply(crc32c_polynomial::zero_bytes(bytes + 8 - 5), crc32c_polynomial::kOne >> 7),
    crc32c_polynomial::multiply(crc32c_polynomial::zero_bytes(bytes - 5), crc32c_polynomial::kOne >> 7)};

template <size_t bytes>
__m256i factors() {
  return _mm256_set_epi64x(kMove<bytes>.second, kMove<bytes>.first, kMove<bytes>.second, kMove<bytes>.first);
}

__m256i moved(__m256i from, __m256i factors) {
  return _mm256_xor_si256(_mm256_clmulepi64_epi128(from, factors, 0x00),
                          _mm256_clmulepi64_epi128(from, factors, 0x11));
}

__m256i load(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

struct OnlyFold : OnlyFeed {
  void vector(size_t, __m256i) const {}
};
struct CopyVectors : Copy {
  void vector(size_t at, __m256i bytes) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + at), bytes);
  }
};

// Feeds whole vectors from `at` on, where there are kStep bytes or more, and moves `at` behind them.
template <typename Also>
uint32_t fold(uint32_t state, const uint8_t* data, size_t size, size_t& at, const Also& also) {
  const auto next = [&] {
    const __m256i bytes = load(data + at);
    also.vector(at, bytes);
    at += kVector;
    return bytes;
  };
  __m256i sums[kVectors];
  for (__m256i& sum : sums) sum = next();
  sums[0] = _mm256_xor_si256(sums[0], _mm256_zextsi128_si256(_mm_cvtsi32_si128(static_cast<int>(state))));
  const __m256i step = factors<kStep>();
  while (size - at >= kStep) {
    for (__m256i& sum : sums) sum = _mm256_xor_si256(moved(sum, step), next());
  }
  const __m256i vector = factors<kVector>();
  __m256i all = sums[0];
  for (size_t i = 1; i < kVectors; ++i) all = _mm256_xor_si256(moved(all, vector), sums[i]);
  while (size - at >= kVector) all = _mm256_xor_si256(moved(all, vector), next());
  const __m128i half = _mm_xor_si128(_mm256_castsi256_si128(moved(all, factors<kVector / 2>())),
                                     _mm256_extracti128_si256(all, 1));
  state = Sse42::word(0, static_cast<uint64_t>(_mm_cvtsi128_si64(half)));
  return Sse42::word(state, static_cast<uint64_t>(_mm_extract_epi64(half, 1)));
}

// From `at` on.
template <typename Also>
uint32_t feed(uint32_t state, const uint8_t* data, size_t size, size_t at, const Also& also) {
  if (size - at >= kStep) state = fold(state, data, size, at, also);
  return feed_rest<Sse42>(state, data, size, at, also);
}

uint32_t extend(uint32_t crc, const uint8_t* data, size_t size) {
  return ~feed(~crc, data, size, 0, OnlyFold{});
}

uint32_t copy(uint32_t crc, const uint8_t* data, size_t size, uint8_t* out) {
  return ~feed(~crc, data, size, 0, CopyVectors{{out}});
}

}  // namespace

extern const Crc32cKernels kVpclmulCrc32cKernels;
const Crc32cKernels kVpclmulCrc32cKernels{"vpclmulqdq", extend, copy, 1024};

}  // namespace stoker
#endif

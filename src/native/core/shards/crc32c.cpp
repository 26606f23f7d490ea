// CRC-32C by table lookup, sixteen bytes a step ("slicing", M. Kounavis and F. Berry, 2005), and which
// kernels this processor runs.
#include "core/shards/crc32c.h"

#include <cstring>

#include "core/base/kernels.h"
#include "core/base/little_endian.h"
#include "core/shards/crc32c_polynomial.h"

namespace stoker {
namespace {

constexpr size_t kStride = 16;

// slice[i].of[v] is what a byte v leaves in the register once i more zero bytes have followed it.
struct Slices {
  crc32c_polynomial::ByteProducts slice[kStride];
  constexpr Slices() {
    for (size_t i = 0; i < kStride; ++i) slice[i] = {crc32c_polynomial::zero_bytes(i + 1), 0};
  }
};
constexpr Slices kSlices;

// The four bytes of `word`, the last of which is followed by `after` more bytes of the step.
template <size_t after>
uint32_t feed(uint32_t word) {
  return kSlices.slice[after + 3].of[word & 255U] ^ kSlices.slice[after + 2].of[(word >> 8) & 255U] ^
         kSlices.slice[after + 1].of[(word >> 16) & 255U] ^ kSlices.slice[after].of[word >> 24];
}

uint32_t extend(uint32_t crc, const uint8_t* data, size_t size) {
  uint32_t state = ~crc;
  for (; size >= kStride; data += kStride, size -= kStride) {
    state = feed<12>(state ^ load_le32(data)) ^ feed<8>(load_le32(data + 4)) ^ feed<4>(load_le32(data + 8)) ^
            feed<0>(load_le32(data + 12));
  }
  for (; size != 0; ++data, --size) state = (state >> 8) ^ kSlices.slice[0].of[(state ^ *data) & 255U];
  return ~state;
}

uint32_t copy(uint32_t crc, const uint8_t* data, size_t size, uint8_t* out) {
  if (size != 0) std::memcpy(out, data, size);
  return extend(crc, out, size);  // not of `data`, which may have changed by now
}

constexpr Crc32cKernels kPortableCrc32cKernels{"portable", extend, copy, 1024};

}  // namespace

#if defined(__x86_64__)
extern const Crc32cKernels kSse42Crc32cKernels;
extern const Crc32cKernels kVpclmulCrc32cKernels;
#elif defined(__aarch64__)
extern const Crc32cKernels kArmCrc32cKernels;
#endif

const std::vector<const Crc32cKernels*>& crc32c_kernels() {
  static const auto list = runnable<Crc32cKernels>({
#if defined(__x86_64__)
      {InstructionSet::kVpclmul, &kVpclmulCrc32cKernels},
      {InstructionSet::kSse42, &kSse42Crc32cKernels},
#elif defined(__aarch64__)
      {InstructionSet::kArmCrc, &kArmCrc32cKernels},
#endif
      {InstructionSet::kAny, &kPortableCrc32cKernels},
  });
  return list;
}

// Feeding is linear, and inverting the register at both ends cancels out: `crc` is what the others find in
// the register, moved on by as many zero bytes.
uint32_t crc32c_join(uint32_t crc, uint32_t others, uint64_t size) {
  static constexpr crc32c_polynomial::ZeroBytes kZeroBytes;
  for (size_t i = 0; size != 0; ++i, size >>= 8) {
    crc = crc32c_polynomial::multiply(crc, kZeroBytes.digit[i].of[size & 255U]);
  }
  return crc ^ others;
}

uint32_t crc32c_extend(uint32_t crc, std::span<const uint8_t> data) {
  return crc32c_kernels().front()->extend(crc, data.data(), data.size());
}

uint32_t crc32c_copy(uint32_t crc, std::span<const uint8_t> data, uint8_t* out) {
  return crc32c_kernels().front()->copy(crc, data.data(), data.size(), out);
}

size_t crc32c_least_copy() {
  return crc32c_kernels().front()->least_copy;
}

}  // namespace stoker

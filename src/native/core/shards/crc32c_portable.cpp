// CRC-32C by table lookup, sixteen bytes a step ("slicing", M. Kounavis and F. Berry, 2005).
#include <cstring>

#include "core/shards/crc32c.h"
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

uint32_t load32(const uint8_t* p) {  // least significant byte first on any machine; compilers see one load
  return uint32_t{p[0]} | uint32_t{p[1]} << 8 | uint32_t{p[2]} << 16 | uint32_t{p[3]} << 24;
}

// The four bytes of `word`, the last of which is followed by `after` more bytes of the step.
template <size_t after>
uint32_t feed(uint32_t word) {
  return kSlices.slice[after + 3].of[word & 255U] ^ kSlices.slice[after + 2].of[(word >> 8) & 255U] ^
         kSlices.slice[after + 1].of[(word >> 16) & 255U] ^ kSlices.slice[after].of[word >> 24];
}

}  // namespace

uint32_t crc32c_extend_portable(uint32_t crc, const uint8_t* data, size_t size) {
  uint32_t state = ~crc;
  for (; size >= kStride; data += kStride, size -= kStride) {
    state = feed<12>(state ^ load32(data)) ^ feed<8>(load32(data + 4)) ^ feed<4>(load32(data + 8)) ^
            feed<0>(load32(data + 12));
  }
  for (; size != 0; ++data, --size) state = (state >> 8) ^ kSlices.slice[0].of[(state ^ *data) & 255U];
  return ~state;
}

uint32_t crc32c_copy_portable(uint32_t crc, const uint8_t* data, size_t size, uint8_t* out) {
  if (size != 0) std::memcpy(out, data, size);
  return crc32c_extend_portable(crc, data, size);
}

}  // namespace stoker

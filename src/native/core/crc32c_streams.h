// CRC-32C with an instruction that takes several cycles but can be started in every one of them.
//
// One chain of dependent instructions would leave the unit idle two cycles of three. So long buffers are cut
// into three neighbouring blocks whose registers advance together, and are joined by feeding zeros: the bytes
// behind a block act on its register as zero bytes would, since feeding is linear.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/crc32c_polynomial.h"

namespace stoker::crc32c_streams {

inline uint64_t load64(const uint8_t* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

// Feeds whole triples of blocks of kBlock bytes; moves `data` and `size` behind them.
// `Instruction` has static functions word(register, 8 bytes) and byte(register, 1 byte).
template <typename Instruction, size_t kBlock>
uint32_t feed_triples(uint32_t state, const uint8_t*& data, size_t& size) {
  static constexpr crc32c_polynomial::ZeroFeed<kBlock> kFeedZeros;
  static_assert(kBlock % 8 == 0);
  for (; size >= 3 * kBlock; data += 3 * kBlock, size -= 3 * kBlock) {
    uint32_t second = 0;
    uint32_t third = 0;
    for (const uint8_t* p = data; p != data + kBlock; p += 8) {
      state = Instruction::word(state, load64(p));
      second = Instruction::word(second, load64(p + kBlock));
      third = Instruction::word(third, load64(p + 2 * kBlock));
    }
    state = kFeedZeros(kFeedZeros(state) ^ second) ^ third;
  }
  return state;
}

// Joining costs some twenty cycles: negligible after a long block, worth it from a short one up.
inline constexpr size_t kLongBlock = 8192;
inline constexpr size_t kShortBlock = 256;

template <typename Instruction>
uint32_t extend(uint32_t crc, const uint8_t* data, size_t size) {
  uint32_t state = ~crc;
  state = feed_triples<Instruction, kLongBlock>(state, data, size);
  state = feed_triples<Instruction, kShortBlock>(state, data, size);
  for (; size >= 8; data += 8, size -= 8) state = Instruction::word(state, load64(data));
  for (; size != 0; ++data, --size) state = Instruction::byte(state, *data);
  return ~state;
}

}  // namespace stoker::crc32c_streams

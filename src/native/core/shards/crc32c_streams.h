// CRC-32C with an instruction that takes several cycles but can be started in every one of them.
//
// One chain of dependent instructions would leave the unit idle two cycles of three. So long buffers are cut
// into three neighbouring blocks whose registers advance together, and are joined by feeding zeros: the bytes
// behind a block act on its register as zero bytes would, since feeding is linear.
#pragma once

#include <cstdint>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#endif

#include "core/base/little_endian.h"
#include "core/shards/crc32c_polynomial.h"

namespace stoker {
namespace {

// What a pass does with the bytes beside feeding them. `at` counts from the start of the data.
struct OnlyFeed {
  void word(size_t, uint64_t) const {}
  void byte(size_t, uint8_t) const {}
};
struct Copy {
  uint8_t* out;
  void word(size_t at, uint64_t bytes) const { store_le64(bytes, out + at); }
  void byte(size_t at, uint8_t byte) const { out[at] = byte; }
};

#if defined(__SSE4_2__)
struct Sse42 {  // in the unnamed namespace, so that no code for SSE4.2 gets a name the linker could share
  static uint32_t word(uint32_t state, uint64_t bytes) {
    return static_cast<uint32_t>(_mm_crc32_u64(state, bytes));
  }
  static uint32_t byte(uint32_t state, uint8_t byte) { return _mm_crc32_u8(state, byte); }
};
#endif

// Feeds whole triples of blocks of kBlock bytes from `at` on; moves `at` behind them.
// `Instruction` has static functions word(register, 8 bytes) and byte(register, 1 byte).
template <typename Instruction, size_t kBlock, typename Also>
uint32_t feed_triples(uint32_t state, const uint8_t* data, size_t size, size_t& at, const Also& also) {
  static constexpr crc32c_polynomial::ZeroFeed<kBlock> kFeedZeros;
  static_assert(kBlock % 8 == 0);
  for (; size - at >= 3 * kBlock; at += 3 * kBlock) {
    uint32_t second = 0;
    uint32_t third = 0;
    for (size_t i = at; i != at + kBlock; i += 8) {
      const uint64_t words[] = {load_le64(data + i), load_le64(data + i + kBlock),
                                load_le64(data + i + 2 * kBlock)};
      state = Instruction::word(state, words[0]);
      second = Instruction::word(second, words[1]);
      third = Instruction::word(third, words[2]);
      also.word(i, words[0]);
      also.word(i + kBlock, words[1]);
      also.word(i + 2 * kBlock, words[2]);
    }
    state = kFeedZeros(kFeedZeros(state) ^ second) ^ third;
  }
  return state;
}

// Feeds the bytes from `at` on, one behind the other.
template <typename Instruction, typename Also>
uint32_t feed_rest(uint32_t state, const uint8_t* data, size_t size, size_t at, const Also& also) {
  for (; size - at >= 8; at += 8) {
    const uint64_t word = load_le64(data + at);
    state = Instruction::word(state, word);
    also.word(at, word);
  }
  for (; at != size; ++at) {
    state = Instruction::byte(state, data[at]);
    also.byte(at, data[at]);
  }
  return state;
}

// Joining costs some twenty cycles: negligible after a long block, worth it from a short one up. A middle
// one keeps what a triple of long ones leaves over from being joined many times.
constexpr size_t kLongBlock = 8192;
constexpr size_t kMiddleBlock = 1024;
constexpr size_t kShortBlock = 256;
// The fewest bytes that three streams copy at nearly full speed.
constexpr size_t kLeastCopy = 3 * kMiddleBlock;

template <typename Instruction, typename Also>
uint32_t extend_streams(uint32_t crc, const uint8_t* data, size_t size, const Also& also) {
  uint32_t state = ~crc;
  size_t at = 0;
  state = feed_triples<Instruction, kLongBlock>(state, data, size, at, also);
  state = feed_triples<Instruction, kMiddleBlock>(state, data, size, at, also);
  state = feed_triples<Instruction, kShortBlock>(state, data, size, at, also);
  return ~feed_rest<Instruction>(state, data, size, at, also);
}

}  // namespace
}  // namespace stoker

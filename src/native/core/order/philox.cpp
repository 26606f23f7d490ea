#include "core/order/philox.h"

namespace stoker {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53} * counter[0];
    const uint64_t second = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
               static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

std::array<uint32_t, 4> SampleRandom::draw(RandomOp op, uint32_t i) const {
  return philox(
      {static_cast<uint32_t>(sample_), static_cast<uint32_t>(sample_ >> 32), static_cast<uint32_t>(epoch_),
       uint32_t{transform_} << 24 | static_cast<uint32_t>(op) << 16 | (i & 0xFFFF)},
      {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
}

uint64_t SampleRandom::user_seed() const {
  const auto words = draw(RandomOp::kUser, 0);
  return uint64_t{words[0]} << 32 | words[1];
}

}  // namespace stoker

// Philox4x32-10, a counter-based generator: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC
// 2011).
#pragma once

#include <array>
#include <cstdint>

namespace stoker {

// The ten rounds of Philox on one counter; the same counter and key always give the same four words.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// What a random choice may depend on: the run's seed, the epoch, the sample, and which operation asks.
enum class RandomOp : uint32_t { kCrop = 1, kFlip = 2, kColor = 3, kUser = 4, kSubstitute = 5 };

// The stream of one operation on one sample in one transform. Draw `i` is a pure function of all six numbers.
// The counter is (index low, index high, epoch, transform << 24 | op << 16 | i); the Philox key is the seed.
class SampleRandom {
 public:
  SampleRandom(uint64_t seed, uint64_t epoch, uint64_t sample, uint8_t transform = 0)
      : seed_(seed), epoch_(epoch), sample_(sample), transform_(transform) {}

  std::array<uint32_t, 4> draw(RandomOp op, uint32_t i) const;

  // For random choices of the consumer.
  uint64_t user_seed() const;

  // The same sample in another transform.
  SampleRandom in_transform(uint8_t transform) const { return {seed_, epoch_, sample_, transform}; }

 private:
  uint64_t seed_;
  uint64_t epoch_;
  uint64_t sample_;
  uint8_t transform_;
};

// [0, 1), from the 32 bits of a draw.
inline double unit(uint32_t word) {
  return word * 0x1p-32;
}

// 0 .. count - 1, from the same.
inline uint32_t pick(uint32_t word, uint32_t count) {
  return static_cast<uint32_t>((uint64_t{word} * count) >> 32);
}

}  // namespace stoker

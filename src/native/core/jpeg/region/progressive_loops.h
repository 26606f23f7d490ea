// The loops of EntropyKernels over progressive scans, compiled once for each instruction set.
#pragma once

#ifdef __BMI2__
#include <immintrin.h>
#endif

#include "core/jpeg/region/entropy_loops.h"

namespace stoker {
namespace {

bool first_dc_of_mcus(EntropyScan& scan, const McuBlock* mcu, size_t blocks, size_t count, uint32_t low) {
  return each_block(scan, mcu, blocks, count, [&](BitWindow&, const McuBlock& block, size_t i) {
    if (block.values == nullptr) return true;
    const auto value = static_cast<uint32_t>(scan.predictions[block.component]) << low;
    block.values[i * block.step * kBlockValues] = static_cast<int16_t>(value);
    return true;
  });
}

// One bit of each block.
bool refine_dc_of_mcus(EntropyScan& scan, const McuBlock* mcu, size_t blocks, size_t count, uint32_t low) {
  for (size_t i = 0; i < count; ++i) {
    scan.reader.prepare();
    BitWindow bits = scan.reader.window;
    bits.refill();
    for (size_t k = 0; k < blocks; ++k) {
      const uint32_t bit = bits.take(1);
      if (mcu[k].values == nullptr) continue;
      int16_t& value = mcu[k].values[i * mcu[k].step * kBlockValues];
      value = static_cast<int16_t>(value | static_cast<int32_t>(bit << low));
    }
    scan.reader.window = bits;
    if (scan.reader.overran()) return false;
  }
  return true;
}

inline int16_t at_bit(int32_t value, uint32_t low) {
  return static_cast<int16_t>(value * (1 << low));
}

template <bool keep>
inline bool first_ac_of_block(BitWindow& bits, BandScan& scan, uint64_t& known, int16_t* values) {
  const HuffmanDecoder& decoder = *scan.ac[0];
  const uint32_t last = scan.last, low = scan.low;
  uint32_t at = scan.first - 1;
  uint64_t nonzero = known;
  for (;;) {
    bits.refill();
    Step step{};
#pragma GCC unroll 5
    for (int i = 0; i < kStepsARefill; ++i) {
      const uint32_t packed = decoder.step(bits.peek(HuffmanDecoder::kWindow));
      step = {BlockStep::move(packed), BlockStep::value(packed)};
      if (step.move == BlockStep::kNoMove) [[unlikely]] {
        step = long_step(bits, decoder, packed);
        if (step.move == 0) return false;
        i = kStepsARefill;
      } else {
        bits.drop(BlockStep::length(packed));
      }
      at += step.move;
      if (at >= last) [[unlikely]] {
        if (step.move == BlockStep::kEndOfBlock) {
          scan.ending = static_cast<uint32_t>(step.value) - 1;
          known = nonzero;
          return true;
        }
        if (at > last) return false;
        nonzero |= uint64_t{step.value != 0} << at;
        if (keep) values[kZigzag[at]] = at_bit(step.value, low);
        known = nonzero;
        return true;
      }
      nonzero |= uint64_t{step.value != 0} << at;
      if (keep) values[kZigzag[at]] = at_bit(step.value, low);
    }
  }
}

template <bool keep>
bool first_ac(BandScan& scan, uint64_t* known, int16_t* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (scan.ending > 0) {
      const size_t skipped = scan.ending < count - i ? scan.ending : count - i;
      scan.ending -= static_cast<uint32_t>(skipped);
      i += skipped - 1;
      continue;
    }
    scan.reader.prepare();
    BitWindow bits = scan.reader.window;
    if (!first_ac_of_block<keep>(bits, scan, known[i], keep ? values + i * kBlockValues : nullptr))
      return false;
    scan.reader.window = bits;
    if (scan.reader.overran()) return false;
  }
  return true;
}

bool first_ac_of_blocks(BandScan& scan, uint64_t* known, int16_t* values, size_t count) {
  return values == nullptr ? first_ac<false>(scan, known, nullptr, count)
                           : first_ac<true>(scan, known, values, count);
}

// How many ones there are. The instruction for it is not in every set that this is compiled for.
inline uint32_t ones(uint64_t word) {
  word -= word >> 1 & 0x5555555555555555;
  word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
  word = (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F;
  return static_cast<uint32_t>(word * 0x0101010101010101 >> 56);
}

// The position of the one that has `n` ones below it; 64 where there is none.
inline uint32_t position_of(uint64_t word, uint32_t n) {
#ifdef __BMI2__
  word = _pdep_u64(uint64_t{1} << n, word);
#else
  for (; n > 0; --n) word &= word - 1;
#endif
  return word == 0 ? 64 : static_cast<uint32_t>(__builtin_ctzll(word));
}

// The next bit of each value that is marked in `positions`, of which there are `n`, no more than are loaded.
template <bool keep>
inline void correct_few(BitWindow& bits, uint64_t positions, uint32_t n, int16_t* values, uint32_t low) {
  if (keep) {
    uint64_t given = bits.bits;
    for (; positions != 0; positions &= positions - 1, given <<= 1) {
      int16_t& value = values[kZigzag[__builtin_ctzll(positions)]];
      const int32_t away = (value >> 15) | 1;  // from zero
      value = static_cast<int16_t>(value + away * static_cast<int32_t>(given >> 63 << low));
    }
  }
  bits.drop(n);
}

template <bool keep>
inline void correct(BitWindow& bits, uint64_t positions, uint32_t n, int16_t* values, uint32_t low) {
  if (n > bits.count) [[unlikely]] {
    bits.refill();
    if (n > bits.count) {
      const uint64_t lower = positions & 0xFFFFFFFF;
      const uint32_t below = ones(lower);
      correct_few<keep>(bits, lower, below, values, low);
      bits.refill();
      return correct_few<keep>(bits, positions ^ lower, n - below, values, low);
    }
  }
  correct_few<keep>(bits, positions, n, values, low);
}

// A value that becomes known stands behind as many zeros as its step says; those between that are known get
// their next bit.
template <bool keep>
inline bool refine_block(BitWindow& bits, BandScan& scan, uint64_t band, uint64_t& known, int16_t* values) {
  const uint32_t low = scan.low;
  const uint64_t before = known & band;
  uint64_t left = band;  // what comes next
  uint32_t begin = scan.first;
  uint64_t added = 0;
  do {
    bits.refill();
    const Step step = next_step(bits, *scan.ac[0]);
    if (step.move == BlockStep::kEndOfBlock) {
      scan.ending = static_cast<uint32_t>(step.value) - 1;
      correct<keep>(bits, left & before, ones(left & before), values, low);
      break;
    }
    if (step.move == 0 || step.value < -1 || step.value > 1) return false;
    const uint32_t at = position_of(left & ~before, step.move - 1);
    if (at > kLastPosition) return false;
    const uint64_t up_to = (uint64_t{2} << at) - 1;
    const uint32_t passed = at - begin - (step.move - 1);
    correct<keep>(bits, left & before & up_to, passed, values, low);
    if (step.value != 0) {
      added |= uint64_t{1} << at;
      if (keep) values[kZigzag[at]] = at_bit(step.value, low);
    }
    left &= ~up_to;
    begin = at + 1;
  } while (left != 0);
  known |= added;
  return true;
}

template <bool keep>
bool refine_ac(BandScan& scan, uint64_t* known, int16_t* values, size_t count) {
  const uint64_t band = ((uint64_t{2} << scan.last) - 1) & ~((uint64_t{1} << scan.first) - 1);
  for (size_t i = 0; i < count; ++i) {
    int16_t* const block = keep ? values + i * kBlockValues : nullptr;
    if (scan.ending > 0) {
      --scan.ending;
      if ((known[i] & band) == 0) continue;
      scan.reader.prepare();
      BitWindow bits = scan.reader.window;
      bits.refill();
      correct<keep>(bits, known[i] & band, ones(known[i] & band), block, scan.low);
      scan.reader.window = bits;
    } else {
      scan.reader.prepare();
      BitWindow bits = scan.reader.window;
      if (!refine_block<keep>(bits, scan, band, known[i], block)) return false;
      scan.reader.window = bits;
    }
    if (scan.reader.overran()) return false;
  }
  return true;
}

bool refine_ac_of_blocks(BandScan& scan, uint64_t* known, int16_t* values, size_t count) {
  return values == nullptr ? refine_ac<false>(scan, known, nullptr, count)
                           : refine_ac<true>(scan, known, values, count);
}

}  // namespace
}  // namespace stoker

// The loops of EntropyKernels, compiled once for each instruction set.
#pragma once

#include "core/jpeg/region/entropy_kernels.h"

namespace stoker {
namespace {

constexpr uint32_t kLastPosition = kBlockValues - 1;
constexpr int kStepsARefill = BitWindow::kRefilled / HuffmanDecoder::kWindow;

constexpr int kPairsARefill = BitWindow::kRefilled / StepPair::kMostBits;

struct Step {
  uint32_t move;  // 0: there is no such code
  int32_t value;
};

// A step whose bits are more than the window's.
inline Step long_step(BitWindow& bits, const HuffmanDecoder& decoder, uint32_t step) {
  HuffmanDecoder::Symbol code{BlockStep::length(step), BlockStep::symbol(step)};
  bits.refill();
  if (code.length == 0) code = decoder.find(bits.peek(16));
  if (code.length == 0) return {0, 0};
  bits.drop(code.length);
  const uint32_t run = code.symbol >> 4, size = code.symbol & 15;
  if (size == 0 && run != 15) {
    if (decoder.kind() == HuffmanClass::kAc) return {BlockStep::kEndOfBlock, 0};
    return {BlockStep::kEndOfBlock, static_cast<int32_t>((1U << run) + bits.take(run))};
  }
  return {run + 1, extend(bits.take(size), size)};
}

inline Step next_step(BitWindow& bits, const HuffmanDecoder& decoder) {
  const uint32_t step = decoder.step(bits.peek(HuffmanDecoder::kWindow));
  if (BlockStep::move(step) == BlockStep::kNoMove) return long_step(bits, decoder, step);
  bits.drop(BlockStep::length(step));
  return {BlockStep::move(step), BlockStep::value(step)};
}

inline bool next_dc(BitWindow& bits, EntropyScan& scan, size_t component) {
  bits.refill();
  const HuffmanDecoder::Symbol code = scan.dc[component]->find(bits.peek(16));
  if (code.length == 0) [[unlikely]]
    return false;
  const uint32_t size = code.symbol, length = code.length + size;
  const uint32_t following = bits.peek(length) & ((1U << size) - 1);
  bits.drop(length);
  const int32_t value = scan.predictions[component] += extend(following, size);
  return value >= -scan.most[component] && value <= scan.most[component];
}

// Where several steps from one position end: whether a block does, whose positions they do not leave.
inline bool ends_block(uint32_t after) {
  return after >= BlockStep::kEndOfBlock && after < BlockStep::kEndOfBlock + kLastPosition;
}

// What a step to or behind the last position of a block means. False: the block has too many values.
inline bool finish(uint32_t before, Step step, int16_t* values, uint8_t& last) {
  if (before + step.move == kLastPosition) {
    values[kLastPosition] = static_cast<int16_t>(step.value);
    last = kLastPosition;
    return true;
  }
  last = static_cast<uint8_t>(before);
  return step.move == BlockStep::kEndOfBlock;
}

// The step that comes next in a block of a baseline scan, by itself.
inline Step single_step(BitWindow& bits, const HuffmanDecoder& decoder) {
  return long_step(bits, decoder, 0);
}

inline bool decode_ac(BitWindow& bits, const HuffmanDecoder& decoder, int16_t* values, uint8_t& last) {
  uint32_t at = 0;
  for (;;) {
    bits.refill();
    int i = 0;
#pragma GCC unroll 3
    for (; i < kPairsARefill; ++i) {
      const uint64_t pair = decoder.pair(bits.peek(HuffmanDecoder::kWindow));
      const uint32_t first = at + StepPair::first_move(pair), after = at + StepPair::move(pair);
      if (after >= kLastPosition) [[unlikely]] {
        if (after != kLastPosition && !ends_block(after)) break;
        if (first != at) values[kZigzag[first]] = StepPair::first_value(pair);
        last = static_cast<uint8_t>(first);
        if (after == kLastPosition) {
          values[kLastPosition] = StepPair::last_value(pair, bits.bits);
          last = kLastPosition;
        }
        bits.drop_by_byte(pair);
        return true;
      }
      values[kZigzag[first]] = StepPair::first_value(pair);
      values[kZigzag[after]] = StepPair::last_value(pair, bits.bits);
      bits.drop_by_byte(pair);
      at = after;
    }
    if (i == kPairsARefill) continue;
    // Mostly a long step, or one of the last two of a block that is full.
    const Step step = single_step(bits, decoder);
    if (step.move == 0) return false;
    if (at + step.move >= kLastPosition) return finish(at, step, values, last);
    at += step.move;
    values[kZigzag[at]] = static_cast<int16_t>(step.value);
  }
}

// From behind position `at`.
template <int window>
inline bool skip_ac(BitWindow& bits, const HuffmanDecoder& decoder, uint32_t at) {
  constexpr int kSkipsARefill = BitWindow::kRefilled / SkipSteps::kMostBits;
  for (;;) {
    bits.refill();
    int i = 0;
#pragma GCC unroll 5
    for (; i < kSkipsARefill; ++i) {
      const uint32_t packed = decoder.skip<window>(bits.peek(window));
      const uint32_t after = at + SkipSteps::move(packed);
      if (after >= kLastPosition) [[unlikely]] {
        if (after != kLastPosition && !ends_block(after)) break;
        bits.drop_by_byte(packed);
        return true;
      }
      if (packed == 0) [[unlikely]]
        break;
      bits.drop_by_byte(packed);
      at = after;
    }
    if (i == kSkipsARefill) continue;
    // Mostly a long step, or the last one of a block that is full.
    const Step step = single_step(bits, decoder);
    if (step.move == 0 || step.move == BlockStep::kEndOfBlock) return step.move != 0;
    at += step.move;
    if (at >= kLastPosition) return at == kLastPosition;
  }
}

// The values up to position `end`, which is not the last one, and perhaps one or two behind it.
template <int window>
inline bool decode_low_ac(BitWindow& bits, const HuffmanDecoder& decoder, uint32_t end, int16_t* values) {
  uint32_t at = 0;
  while (at < end) {
    bits.refill();
#pragma GCC unroll 3
    for (int i = 0; i < kPairsARefill; ++i) {
      const uint64_t pair = decoder.pair(bits.peek(HuffmanDecoder::kWindow));
      const uint32_t first = at + StepPair::first_move(pair), after = at + StepPair::move(pair);
      if (after >= end) [[unlikely]] {
        if (after > kLastPosition && !ends_block(after)) {
          const Step step = single_step(bits, decoder);
          if (step.move == 0) return false;
          at += step.move;
          if (at >= kLastPosition) return at == kLastPosition || step.move == BlockStep::kEndOfBlock;
          values[kZigzag[at]] = static_cast<int16_t>(step.value);
          break;
        }
        if (first != at) values[kZigzag[first]] = StepPair::first_value(pair);
        if (after <= kLastPosition) values[kZigzag[after]] = StepPair::last_value(pair, bits.bits);
        bits.drop_by_byte(pair);
        if (after >= kLastPosition) return true;
        at = after;
        break;
      }
      values[kZigzag[first]] = StepPair::first_value(pair);
      values[kZigzag[after]] = StepPair::last_value(pair, bits.bits);
      bits.drop_by_byte(pair);
      at = after;
    }
  }
  return skip_ac<window>(bits, decoder, at);
}

// Calls read(bits, one of `mcu`, number of its MCU) for all blocks in their order.
template <typename Block>
bool each_block(EntropyScan& scan, const McuBlock* mcu, size_t blocks, size_t count, const Block& read) {
  for (size_t i = 0; i < count; ++i) {
    scan.reader.prepare();
    BitWindow bits = scan.reader.window;
    for (size_t k = 0; k < blocks; ++k) {
      if (!next_dc(bits, scan, mcu[k].component) || !read(bits, mcu[k], i)) return false;
    }
    scan.reader.window = bits;
    if (scan.reader.overran()) return false;
  }
  return true;
}

bool decode_mcus(EntropyScan& scan, const McuBlock* mcu, size_t blocks, size_t count) {
  return each_block(scan, mcu, blocks, count, [&](BitWindow& bits, const McuBlock& block, size_t i) {
    int16_t* values = block.values + i * block.step * kBlockValues;
    values[0] = static_cast<int16_t>(scan.predictions[block.component]);
    return decode_ac(bits, *scan.ac[block.component], values, block.last[i * block.step]);
  });
}

template <int window>
bool decode_low(EntropyScan& scan, const McuBlock* mcu, size_t blocks, size_t count) {
  return each_block(scan, mcu, blocks, count, [&](BitWindow& bits, const McuBlock& block, size_t i) {
    int16_t* values = block.values + i * block.step * kBlockValues;
    uint8_t& last = block.last[i * block.step];
    const HuffmanDecoder& decoder = *scan.ac[block.component];
    values[0] = static_cast<int16_t>(scan.predictions[block.component]);
    if (block.end == kLastPosition) return decode_ac(bits, decoder, values, last);
    last = block.end;
    return decode_low_ac<window>(bits, decoder, block.end, values);
  });
}

bool decode_low_of_mcus(EntropyScan& scan, const McuBlock* mcu, size_t blocks, size_t count) {
  return (scan.wide_skips ? decode_low<HuffmanDecoder::kWideSkipWindow>
                          : decode_low<HuffmanDecoder::kSkipWindow>)(scan, mcu, blocks, count);
}

template <int window>
bool skip(EntropyScan& scan, const McuBlock* mcu, size_t blocks, size_t count) {
  return each_block(scan, mcu, blocks, count, [&](BitWindow& bits, const McuBlock& block, size_t) {
    return skip_ac<window>(bits, *scan.ac[block.component], 0);
  });
}

bool skip_mcus(EntropyScan& scan, const McuBlock* mcu, size_t blocks, size_t count) {
  return (scan.wide_skips ? skip<HuffmanDecoder::kWideSkipWindow>
                          : skip<HuffmanDecoder::kSkipWindow>)(scan, mcu, blocks, count);
}

}  // namespace
}  // namespace stoker

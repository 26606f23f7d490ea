// The loops of EntropyKernels, compiled once for each instruction set.
#pragma once

#include "core/jpeg/baseline/entropy_kernels.h"

namespace stoker {
namespace {

constexpr uint32_t kLastPosition = kBlockValues - 1;
constexpr int kStepsARefill = BitWindow::kRefilled / HuffmanDecoder::kWindow;
constexpr int kSkipsARefill = BitWindow::kRefilled / HuffmanDecoder::kSkipWindow;

struct Step {
  uint32_t move;  // 0: there is no such code
  int32_t value;
};

// A step whose bits are more than the window's.
inline Step long_step(BitWindow& bits, const HuffmanDecoder& decoder, uint32_t step) {
  HuffmanDecoder::Symbol found{BlockStep::length(step), BlockStep::symbol(step)};
  bits.refill();
  if (found.length == 0) found = decoder.find(bits.peek(16));
  if (found.length == 0) return {0, 0};
  bits.drop(found.length);
  if (decoder.kind() == HuffmanClass::kDc) return {1, extend(bits.take(found.symbol), found.symbol)};
  const uint32_t run = found.symbol >> 4, size = found.symbol & 15;
  if (size == 0 && run != 15) return {BlockStep::kEndOfBlock, 0};
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
  const Step step = next_step(bits, *scan.dc[component]);
  const int32_t value = scan.predictions[component] += step.value;
  return step.move != 0 && value >= -scan.most[component] && value <= scan.most[component];
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

inline bool decode_ac(BitWindow& bits, const HuffmanDecoder& decoder, int16_t* values, uint8_t& last) {
  uint32_t at = 0;
  for (;;) {
    bits.refill();
    uint32_t packed = 0;
#pragma GCC unroll 5
    for (int i = 0; i < kStepsARefill; ++i) {
      packed = decoder.step(bits.peek(HuffmanDecoder::kWindow));
      const Step step{BlockStep::move(packed), BlockStep::value(packed)};
      if (step.move == BlockStep::kNoMove) [[unlikely]]
        break;
      bits.drop(BlockStep::length(packed));
      if (at + step.move >= kLastPosition) [[unlikely]]
        return finish(at, step, values, last);
      at += step.move;
      values[kZigzag[at]] = static_cast<int16_t>(step.value);
    }
    if (BlockStep::move(packed) != BlockStep::kNoMove) continue;
    const Step step = long_step(bits, decoder, packed);
    if (step.move == 0) return false;
    if (at + step.move >= kLastPosition) return finish(at, step, values, last);
    at += step.move;
    values[kZigzag[at]] = static_cast<int16_t>(step.value);
  }
}

inline bool skip_ac(BitWindow& bits, const HuffmanDecoder& decoder) {
  uint32_t at = 0;
  for (;;) {
    bits.refill();
    int i = 0;
#pragma GCC unroll 5
    for (; i < kSkipsARefill; ++i) {
      const uint32_t packed = decoder.skip(bits.peek(HuffmanDecoder::kSkipWindow));
      const uint32_t after = at + SkipSteps::move(packed);
      if (after >= kLastPosition) [[unlikely]] {
        if (after < BlockStep::kEndOfBlock || after >= BlockStep::kEndOfBlock + kLastPosition) break;
        bits.drop(SkipSteps::length(packed));
        return true;
      }
      if (packed == 0) [[unlikely]]
        break;
      bits.drop(SkipSteps::length(packed));
      at = after;
    }
    if (i == kSkipsARefill) continue;
    // Mostly a long step, or the last one of a block that is full.
    bits.refill();
    const Step step = next_step(bits, decoder);
    if (step.move == 0 || step.move == BlockStep::kEndOfBlock) return step.move != 0;
    at += step.move;
    if (at >= kLastPosition) return at == kLastPosition;
  }
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

bool decode_dc_of_mcus(EntropyScan& scan, const McuBlock* mcu, size_t blocks, size_t count) {
  return each_block(scan, mcu, blocks, count, [&](BitWindow& bits, const McuBlock& block, size_t i) {
    block.values[i * block.step * kBlockValues] = static_cast<int16_t>(scan.predictions[block.component]);
    block.last[i * block.step] = 0;
    return skip_ac(bits, *scan.ac[block.component]);
  });
}

bool skip_mcus(EntropyScan& scan, const McuBlock* mcu, size_t blocks, size_t count) {
  return each_block(scan, mcu, blocks, count, [&](BitWindow& bits, const McuBlock& block, size_t) {
    return skip_ac(bits, *scan.ac[block.component]);
  });
}

}  // namespace
}  // namespace stoker

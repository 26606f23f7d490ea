#include "core/jpeg/baseline/huffman.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace stoker {
namespace {

constexpr uint32_t kRunOf16 = 0xF0;
constexpr uint32_t kPositions = 64;

// What a symbol says of the position in the block, and how many bits of a coefficient follow it.
struct Meaning {
  uint32_t move;
  uint32_t bits;
};

Meaning meaning_of(uint32_t symbol, HuffmanClass kind) {
  if (kind == HuffmanClass::kDc) return {1, symbol};
  const uint32_t run = symbol >> 4, bits = symbol & 15;
  if (bits == 0 && symbol != kRunOf16) return {BlockStep::kEndOfBlock, 0};
  return {run + 1, bits};
}

uint32_t make_step(uint32_t length, uint32_t move, int32_t value) {
  return length | move << 8 | static_cast<uint32_t>(value) << 16;
}

}  // namespace

bool HuffmanDecoder::build(const HuffmanCode& code, HuffmanClass kind) {
  code_ = code;
  kind_ = kind;
  skips_built_ = false;
  std::fill(std::begin(steps_), std::end(steps_), 0U);
  uint32_t next = 0;  // the code to be given out, of the current length
  uint32_t index = 0;
  for (uint32_t length = 1; length <= 16; ++length, next <<= 1) {
    const uint32_t count = code.counts[length - 1];
    if (count > code.symbols.size() - index || next + count > uint32_t{1} << length) return false;
    first_index_[length] = static_cast<int32_t>(index) - static_cast<int32_t>(next);
    for (uint32_t i = 0; i < count; ++i, ++next, ++index) {
      const uint32_t symbol = code.symbols[index];
      // libjpeg refuses longer DC differences; those of more than 11 bits do not occur in images of 8 bits.
      if (kind == HuffmanClass::kDc && symbol > 11) return false;
      if (length > kWindow) continue;
      const Meaning meaning = meaning_of(symbol, kind);
      const uint32_t rest = kWindow - length;
      const uint32_t begin = next << rest;
      for (uint32_t tail = 0; tail < uint32_t{1} << rest; ++tail) {
        const bool whole = meaning.bits <= rest;
        steps_[begin + tail] = whole ? make_step(length + meaning.bits, meaning.move,
                                                 extend(tail >> (rest - meaning.bits), meaning.bits))
                                     : make_step(length, BlockStep::kNoMove, static_cast<int32_t>(symbol));
      }
    }
    end_[length] = next << (16 - length);
  }
  return true;
}

HuffmanDecoder::Symbol HuffmanDecoder::find(uint32_t bits) const {
  // Codes grow with their length, so the first end above the bits is the right one; shorter ones are steps.
  for (uint32_t length = kWindow + 1; length <= 16; ++length) {
    if (bits >= end_[length]) continue;
    const int32_t index = first_index_[length] + static_cast<int32_t>(bits >> (16 - length));
    return {length, code_.symbols[static_cast<size_t>(index)]};
  }
  return {0, 0};
}

// Which step each window of kSkipWindow bits begins with; 0 where it is not whole.
void HuffmanDecoder::first_steps(std::span<uint16_t> out) const {
  std::fill(out.begin(), out.end(), uint16_t{0});
  uint32_t next = 0, index = 0;
  for (uint32_t length = 1; length <= kSkipWindow; ++length, next <<= 1) {
    for (uint32_t i = 0; i < code_.counts[length - 1]; ++i, ++next, ++index) {
      const Meaning meaning = meaning_of(code_.symbols[index], kind_);
      const uint32_t bits = length + meaning.bits;
      if (bits > kSkipWindow) continue;
      const auto begin = out.begin() + (next << (kSkipWindow - length));
      std::fill_n(begin, 1 << (kSkipWindow - length), static_cast<uint16_t>(bits | meaning.move << 8));
    }
  }
}

// From the sums of short windows come those of longer ones: a step, and then what the bits behind it hold.
void HuffmanDecoder::build_skips() {
  if (skips_built_) return;
  skips_built_ = true;
  std::array<uint16_t, size_t{1} << kSkipWindow> first;
  first_steps(first);
  // The sum of a window v of n bits is at 2^n + v.
  skips_[1] = 0;
  for (uint32_t known = 1; known <= kSkipWindow; ++known) {
    for (uint32_t window = 0; window < uint32_t{1} << known; ++window) {
      const uint32_t step = first[window << (kSkipWindow - known)];
      const uint32_t bits = SkipSteps::length(step);
      const bool whole = bits - 1 < known;  // 0 bits are none
      const uint32_t left = whole ? known - bits : 0;
      const uint32_t sum = step + skips_[(1U << left) + (window & ((1U << left) - 1))];
      // Moves of more than a block are left to single steps, which tell what is wrong.
      const uint32_t positions = SkipSteps::move(sum) & (BlockStep::kEndOfBlock - 1);
      const bool ends = SkipSteps::move(step) >= BlockStep::kEndOfBlock;
      const uint32_t best = ends || positions >= kPositions || SkipSteps::move(sum) > 255 ? step : sum;
      skips_[(1U << known) + window] = static_cast<uint16_t>(whole ? best : 0);
    }
  }
}

HuffmanDecoder* HuffmanCache::find(const HuffmanCode& code, HuffmanClass kind) {
  ++now_;
  Entry* oldest = &entries_.front();
  for (Entry& entry : entries_) {
    if (entry.used != 0 && entry.decoder.kind() == kind && entry.decoder.code() == code) {
      entry.used = now_;
      return &entry.decoder;
    }
    if (entry.used < oldest->used) oldest = &entry;
  }
  oldest->used = oldest->decoder.build(code, kind) ? now_ : 0;
  return oldest->used != 0 ? &oldest->decoder : nullptr;
}

}  // namespace stoker

#include "core/jpeg/region/huffman.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace stoker {
namespace {

constexpr uint32_t kRunOf16 = 0xF0;
constexpr uint32_t kPositions = 64;

// What a symbol of AC coefficients says of the position in the block, and how many bits of a coefficient, or
// of the number of blocks that end, follow it.
struct Meaning {
  uint32_t move;
  uint32_t bits;
  bool ends_several;

  int32_t value(uint32_t following) const {
    return ends_several ? static_cast<int32_t>((1U << bits) + following) : extend(following, bits);
  }
};

Meaning meaning_of(uint32_t symbol, HuffmanClass kind) {
  const uint32_t run = symbol >> 4, bits = symbol & 15;
  if (bits != 0 || symbol == kRunOf16) return {run + 1, bits, false};
  const bool ends_several = kind == HuffmanClass::kProgressiveAc;
  return {BlockStep::kEndOfBlock, ends_several ? run : 0, ends_several};
}

uint64_t word(int32_t value) {
  return static_cast<uint16_t>(value);
}

uint32_t make_step(uint32_t length, uint32_t move, int32_t value) {
  return length | move << 8 | static_cast<uint32_t>(value) << 16;
}

// Puts what a code of `length` bits and the first bits behind it say, as the last step of a pair, for all
// windows of 1..kWindow bits that begin with it: that of the window v of n bits is at 2^n + v.
void put_last_steps(uint64_t* out, uint32_t code, uint32_t length, const Meaning& meaning) {
  for (uint32_t known = length; known <= HuffmanDecoder::kWindow; ++known) {
    const uint32_t rest = known - length;
    if (rest == 0 && meaning.bits != 0) continue;  // the sign is not known
    // With the longest first step there can be.
    const uint32_t all = length + meaning.bits;
    if (HuffmanDecoder::kWindow - known + all > StepPair::kMostBits) continue;
    const uint32_t there = std::min(meaning.bits, rest), missing = meaning.bits - there;
    const uint64_t step = all | meaning.move << 8 | ((1U << missing) - 1) << 24;
    uint64_t* to = out + ((1U << known) + (code << rest));
    for (uint32_t bits = 0; bits < 1U << there; ++bits, to += 1U << (rest - there)) {
      std::fill_n(to, 1U << (rest - there), step | word(extend(bits << missing, meaning.bits)) << 48);
    }
  }
}

// One of SkipSteps and those behind it, or it alone: moves of more than a block are left to single steps,
// which tell what is wrong.
uint16_t add_steps(uint16_t step, uint16_t others) {
  const auto sum = static_cast<uint16_t>(step + others);
  const bool is_long = SkipSteps::length(sum) > SkipSteps::kMostBits;
  const bool leaves = (SkipSteps::move(sum) & (BlockStep::kEndOfBlock - 1)) >= kPositions;
  return is_long || leaves ? step : sum;
}

}  // namespace

bool HuffmanDecoder::build(const HuffmanCode& code, HuffmanClass kind) {
  code_ = code;
  kind_ = kind;
  skip_window_ = 0;
  std::fill(std::begin(codes_), std::end(codes_), uint16_t{0});
  uint32_t next = 0;  // the code to be given out, of the current length
  uint32_t index = 0;
  for (uint32_t length = 1; length <= 16; ++length, next <<= 1) {
    const uint32_t count = code.counts[length - 1];
    if (count > code.symbols.size() - index || next + count > uint32_t{1} << length) return false;
    first_index_[length] = static_cast<int32_t>(index) - static_cast<int32_t>(next);
    for (uint32_t i = 0; i < count; ++i, ++next, ++index) {
      // libjpeg refuses longer DC differences; those of more than 11 bits do not occur in images of 8 bits.
      if (kind == HuffmanClass::kDc && code.symbols[index] > 11) return false;
      if (length > kShortCode) continue;
      std::fill_n(codes_ + (next << (kShortCode - length)), 1U << (kShortCode - length),
                  static_cast<uint16_t>(length | uint32_t{code.symbols[index]} << 8));
    }
    end_[length] = next << (16 - length);
  }
  if (kind == HuffmanClass::kAc) build_pairs();
  if (kind == HuffmanClass::kProgressiveAc) build_steps();
  return true;
}

void HuffmanDecoder::build_steps() {
  std::fill(std::begin(steps_), std::end(steps_), 0U);
  uint32_t next = 0, index = 0;
  for (uint32_t length = 1; length <= kWindow; ++length, next <<= 1) {
    const uint32_t rest = kWindow - length;
    for (uint32_t i = 0; i < code_.counts[length - 1]; ++i, ++next, ++index) {
      const uint32_t symbol = code_.symbols[index];
      const uint32_t begin = next << rest;
      const Meaning meaning = meaning_of(symbol, kind_);
      for (uint32_t tail = 0; tail < uint32_t{1} << rest; ++tail) {
        const bool whole = meaning.bits <= rest;
        steps_[begin + tail] = whole ? make_step(length + meaning.bits, meaning.move,
                                                 meaning.value(tail >> (rest - meaning.bits)))
                                     : make_step(length, BlockStep::kNoMove, static_cast<int32_t>(symbol));
      }
    }
  }
}

void HuffmanDecoder::build_pairs() {
  constexpr uint32_t kWindows = 1U << kWindow;
  std::array<uint64_t, 2 * kWindows> last_steps{};
  uint32_t next = 0, index = 0;
  for (uint32_t length = 1; length <= kWindow; ++length, next <<= 1) {
    for (uint32_t i = 0; i < code_.counts[length - 1]; ++i, ++next, ++index) {
      put_last_steps(last_steps.data(), next, length, meaning_of(code_.symbols[index], kind_));
    }
  }
  pair_table_.resize(kWindows);
  for (uint32_t window = 0; window < kWindows; ++window) {
    const uint64_t first = last_steps[kWindows + window];
    const uint32_t move = StepPair::move(first), length = StepPair::length(first);
    if (first == 0 || move == BlockStep::kEndOfBlock) {
      pair_table_[window] = first == 0 ? StepPair::kUnknown : first;
      continue;
    }
    const uint64_t as_first = uint64_t{move} << 16 | (first >> 48) << 32;
    const uint32_t left = length < kWindow ? 1U << (kWindow - length) : 1;
    const uint64_t second = last_steps[left + (window & (left - 1))];
    // Lengths and moves add up.
    pair_table_[window] = as_first + (second == 0 ? first : second + (length | move << 8));
  }
  pairs_ = pair_table_.data();
}

HuffmanDecoder::Symbol HuffmanDecoder::find_long(uint32_t bits) const {
  // Codes grow with their length, so the first end above the bits is the right one; shorter ones are known.
  for (uint32_t length = kShortCode + 1; length <= 16; ++length) {
    if (bits >= end_[length]) continue;
    const int32_t index = first_index_[length] + static_cast<int32_t>(bits >> (16 - length));
    return {length, code_.symbols[static_cast<size_t>(index)]};
  }
  return {0, 0};
}

// From the sums of short windows come those of longer ones: a step, and then what the bits behind it tell.
void HuffmanDecoder::build_skips(int window) {
  if (skip_window_ >= window) return;
  skip_window_ = 0;
  const auto widest = static_cast<uint32_t>(window);
  // The sum of a window v of n bits is at 2^n + v; 0 where the code is not in it.
  skip_table_.assign(size_t{2} << widest, 0);
  uint16_t* const sums = skip_table_.data();
  for (uint32_t known = 1; known <= widest; ++known) {
    uint32_t next = 0, index = 0;
    for (uint32_t length = 1; length <= known; ++length, next <<= 1) {
      for (uint32_t i = 0; i < code_.counts[length - 1]; ++i, ++next, ++index) {
        const Meaning meaning = meaning_of(code_.symbols[index], kind_);
        const uint32_t bits = length + meaning.bits;
        if (bits > SkipSteps::kMostBits) continue;
        const auto step = static_cast<uint16_t>(bits | meaning.move << 8);
        uint16_t* const to = sums + ((1U << known) + (next << (known - length)));
        const size_t windows = size_t{1} << (known - length);
        if (bits >= known || meaning.move == BlockStep::kEndOfBlock) {
          std::fill_n(to, windows, step);
          continue;
        }
        const size_t tails = size_t{1} << (known - bits);
        for (size_t tail = 0; tail < tails; ++tail) to[tail] = add_steps(step, sums[tails + tail]);
        // Whatever the coefficient is.
        for (size_t at = tails; at < windows; at += tails) std::copy_n(to, tails, to + at);
      }
    }
  }
  skips_ = sums;
  skip_window_ = window;
}

void HuffmanCache::start_image() {
  begin_ = now_;
  if (entries_.size() > kKept) entries_.resize(kKept);
}

HuffmanDecoder* HuffmanCache::find(const HuffmanCode& code, HuffmanClass kind) {
  ++now_;
  Entry* oldest = nullptr;
  for (Entry& entry : entries_) {
    if (entry.used != 0 && entry.decoder.kind() == kind && entry.decoder.code() == code) {
      entry.used = now_;
      return &entry.decoder;
    }
    if (oldest == nullptr || entry.used < oldest->used) oldest = &entry;
  }
  const bool is_free = oldest != nullptr && oldest->used <= begin_;
  Entry& entry = is_free && entries_.size() >= kKept ? *oldest : entries_.emplace_back();
  entry.used = entry.decoder.build(code, kind) ? now_ : 0;
  return entry.used != 0 ? &entry.decoder : nullptr;
}

}  // namespace stoker

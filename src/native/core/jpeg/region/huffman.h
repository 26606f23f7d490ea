// Huffman tables of a JPEG, and the tables that decode them a window of bits at a time (ITU-T T.81 annex C
// and F).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace stoker {

// As a DHT segment gives it: how many codes each length has, and the symbols in the order of their codes.
struct HuffmanCode {
  std::array<uint8_t, 16> counts{};
  std::array<uint8_t, 256> symbols{};

  friend bool operator==(const HuffmanCode&, const HuffmanCode&) = default;
};

// kProgressiveAc: of the AC coefficients of a progressive scan, whose blocks may end together.
enum class HuffmanClass : uint8_t { kDc, kAc, kProgressiveAc };

// One step through a block of a progressive scan, as found by the next bits of the stream: a coefficient, or
// the end of the block.
// bits 0-7: length of the code and the bits behind it; bits 8-15: how far the position in the block moves;
// bits 16-31: the coefficient, a signed number; where the block ends, how many blocks do, this one included.
// A step that is not in the window has kNoMove, and the length of its code with its symbol in bits 16-23, or
// the length 0 when not even the code is in the window.
struct BlockStep {
  static constexpr uint32_t kNoMove = 0;
  static constexpr uint32_t kEndOfBlock = 128;  // as a move; a block has 64 positions

  // Less than 64: a shift by it needs no other bits taken away first.
  [[gnu::always_inline]] static uint32_t length(uint32_t step) { return step & 63; }
  [[gnu::always_inline]] static uint32_t move(uint32_t step) { return step >> 8 & 0xFF; }
  [[gnu::always_inline]] static int32_t value(uint32_t step) { return static_cast<int32_t>(step) >> 16; }
  [[gnu::always_inline]] static uint32_t symbol(uint32_t step) { return step >> 16 & 0xFF; }
};

// Two steps through a block of a baseline scan, or one where the window tells no more. Of the last one only
// the code and the sign have to be in the window.
// bits 0-7: length of the codes and the bits behind them; bits 8-15: how far the position moves in all, as
// BlockStep; bits 16-23: with the first coefficient, 0 where there is none; bits 24-31: a one for each bit of
// the last coefficient that is not in the window; bits 32-47: the first coefficient; bits 48-63: the last
// one, as if those bits were 0. A coefficient by itself is the first and the last one.
struct StepPair {
  static constexpr uint32_t kMostBits = 18;
  static constexpr uint64_t kUnknown = 0xFF00;  // moves further than any other: one step has to be looked at

  [[gnu::always_inline]] static uint32_t length(uint64_t pair) { return static_cast<uint32_t>(pair) & 63; }
  [[gnu::always_inline]] static uint32_t move(uint64_t pair) {
    return static_cast<uint32_t>(pair) >> 8 & 0xFF;
  }
  [[gnu::always_inline]] static uint32_t first_move(uint64_t pair) {
    return static_cast<uint32_t>(pair) >> 16 & 0xFF;
  }
  [[gnu::always_inline]] static int16_t first_value(uint64_t pair) {
    return static_cast<int16_t>(static_cast<uint16_t>(pair >> 32));
  }
  // `bits` are those of the stream, from the top.
  [[gnu::always_inline]] static int16_t last_value(uint64_t pair, uint64_t bits) {
    const uint64_t missing = bits >> (64 - length(pair)) & static_cast<uint32_t>(pair) >> 24;
    return static_cast<int16_t>(static_cast<uint16_t>((pair >> 48) + missing));
  }
};

// Several steps through a block that is not decoded, added up. bits 0-7: the bits they take; bits 8-15: how
// far they move, and kEndOfBlock more when the last of them ends the block. 0: not even one is known. A code
// tells how many bits follow it: of the last step it alone has to be in the window.
struct SkipSteps {
  static constexpr uint32_t kMostBits = 18;

  [[gnu::always_inline]] static uint32_t length(uint32_t steps) { return steps & 63; }
  [[gnu::always_inline]] static uint32_t move(uint32_t steps) { return steps >> 8; }
};

class HuffmanDecoder {
 public:
  static constexpr int kWindow = 10;
  static constexpr int kShortCode = 8;  // bits
  static constexpr int kSkipWindow = 11;
  // Takes longer to prepare, and a larger part of a first-level cache.
  static constexpr int kWideSkipWindow = 12;

  // False where the lengths do not form a code that libjpeg accepts.
  bool build(const HuffmanCode& code, HuffmanClass kind);

  // What the next kWindow bits say: of kProgressiveAc, and of kAc.
  [[gnu::always_inline]] uint32_t step(uint64_t window) const { return steps_[window]; }
  [[gnu::always_inline]] uint64_t pair(uint64_t window) const { return pairs_[window]; }

  // As many steps as the next `window` bits tell of, of AC coefficients. Only after build_skips() for as
  // many.
  template <int window>
  [[gnu::always_inline]] uint32_t skip(uint64_t bits) const {
    return skips_[(size_t{1} << window) + bits];
  }
  void build_skips(int window);

  // The length of the code that the next 16 bits begin with, and its symbol. Length 0: there is none.
  struct Symbol {
    uint32_t length;
    uint32_t symbol;
  };
  [[gnu::always_inline]] Symbol find(uint32_t bits) const {
    const uint32_t code = codes_[bits >> (16 - kShortCode)];
    return code != 0 ? Symbol{code & 0xFF, code >> 8} : find_long(bits);
  }

  const HuffmanCode& code() const { return code_; }
  [[gnu::always_inline]] HuffmanClass kind() const { return kind_; }

 private:
  void build_steps();
  void build_pairs();
  Symbol find_long(uint32_t bits) const;

  HuffmanCode code_;
  HuffmanClass kind_ = HuffmanClass::kDc;
  std::array<uint32_t, 17> end_{};                // of the codes of each length, moved to the top of 16 bits
  std::array<int32_t, 17> first_index_{};         // index of a length's first symbol, less its first code
  uint16_t codes_[size_t{1} << kShortCode] = {};  // lengths, and symbols in the upper byte; 0: a longer one
  uint32_t steps_[size_t{1} << kWindow] = {};
  std::vector<uint64_t> pair_table_;
  const uint64_t* pairs_ = nullptr;  // its data: kernels call nothing of a container
  int skip_window_ = 0;              // the widest that is built
  std::vector<uint16_t> skip_table_;
  const uint16_t* skips_ = nullptr;  // its data
};

// The decoders that one thread used last: neighbours in a dataset often share their tables.
class HuffmanCache {
 public:
  // Another image comes: the decoders found so far may give way to its own.
  void start_image();

  // Null if the table is not a valid code. Lives until the next start_image().
  HuffmanDecoder* find(const HuffmanCode& code, HuffmanClass kind);

 private:
  static constexpr size_t kKept = 12;  // between images; few use more

  struct Entry {
    HuffmanDecoder decoder;
    uint64_t used = 0;  // when; 0: never
  };
  std::deque<Entry> entries_;  // which stay where they are
  uint64_t now_ = 0;
  uint64_t begin_ = 0;  // of the image
};

// What `count` bits that follow a code mean (T.81 F.2.2.1): the upper half of the numbers is positive.
[[gnu::always_inline]] inline int32_t extend(uint32_t bits, uint32_t count) {
  const auto value = static_cast<int32_t>(bits);
  return value < (1 << count >> 1) ? value - (1 << count) + 1 : value;
}

}  // namespace stoker

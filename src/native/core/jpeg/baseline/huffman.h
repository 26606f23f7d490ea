// Huffman tables of a JPEG, and the tables that decode them a window of bits at a time (ITU-T T.81 annex C
// and F).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stoker {

// As a DHT segment gives it: how many codes each length has, and the symbols in the order of their codes.
struct HuffmanCode {
  std::array<uint8_t, 16> counts{};
  std::array<uint8_t, 256> symbols{};

  friend bool operator==(const HuffmanCode&, const HuffmanCode&) = default;
};

enum class HuffmanClass : uint8_t { kDc, kAc };

// One step through a block, as found by the next bits of the stream: a coefficient, or the end of the block.
// bits 0-7: length of the code and the bits behind it; bits 8-15: how far the position in the block moves;
// bits 16-31: the coefficient, a signed number. A step that is not in the window has kNoMove, and the length
// of its code with its symbol in bits 16-23, or the length 0 when not even the code is in the window.
struct BlockStep {
  static constexpr uint32_t kNoMove = 0;
  static constexpr uint32_t kEndOfBlock = 128;  // as a move; a block has 64 positions

  [[gnu::always_inline]] static uint32_t length(uint32_t step) { return step & 0xFF; }
  [[gnu::always_inline]] static uint32_t move(uint32_t step) { return step >> 8 & 0xFF; }
  [[gnu::always_inline]] static int32_t value(uint32_t step) { return static_cast<int32_t>(step) >> 16; }
  [[gnu::always_inline]] static uint32_t symbol(uint32_t step) { return step >> 16 & 0xFF; }
};

// Several steps through a block that is not decoded, added up. bits 0-7: the bits they take; bits 8-15: how
// far they move, and kEndOfBlock more when the last of them ends the block. 0: not even one is in the window.
struct SkipSteps {
  [[gnu::always_inline]] static uint32_t length(uint32_t steps) { return steps & 0xFF; }
  [[gnu::always_inline]] static uint32_t move(uint32_t steps) { return steps >> 8; }
};

class HuffmanDecoder {
 public:
  static constexpr int kWindow = 10;
  static constexpr int kSkipWindow = 11;

  // False where the lengths do not form a code that libjpeg accepts.
  bool build(const HuffmanCode& code, HuffmanClass kind);

  // What the next kWindow bits say.
  [[gnu::always_inline]] uint32_t step(uint64_t window) const { return steps_[window]; }

  // As many steps as lie in the next kSkipWindow bits, of AC coefficients. Only after build_skips().
  [[gnu::always_inline]] uint32_t skip(uint64_t window) const {
    return skips_[(size_t{1} << kSkipWindow) + window];
  }
  void build_skips();

  // The length of the code that the next 16 bits begin with, and its symbol. Length 0: there is none.
  struct Symbol {
    uint32_t length;
    uint32_t symbol;
  };
  Symbol find(uint32_t bits) const;

  const HuffmanCode& code() const { return code_; }
  [[gnu::always_inline]] HuffmanClass kind() const { return kind_; }

 private:
  void first_steps(std::span<uint16_t> out) const;

  HuffmanCode code_;
  HuffmanClass kind_ = HuffmanClass::kDc;
  std::array<uint32_t, 17> end_{};         // of the codes of each length, moved to the top of 16 bits
  std::array<int32_t, 17> first_index_{};  // index of a length's first symbol, less its first code
  uint32_t steps_[size_t{1} << kWindow] = {};
  bool skips_built_ = false;
  uint16_t skips_[size_t{2} << kSkipWindow] = {};
};

// The decoders that one thread used last: neighbours in a dataset often share their tables.
class HuffmanCache {
 public:
  // Null where the code is not one. Lives until kRoom others were asked for.
  HuffmanDecoder* find(const HuffmanCode& code, HuffmanClass kind);

  static constexpr size_t kRoom = 12;  // an image uses up to six

 private:
  struct Entry {
    HuffmanDecoder decoder;
    uint64_t used = 0;  // when; 0: never
  };
  std::vector<Entry> entries_ = std::vector<Entry>(kRoom);
  uint64_t now_ = 0;
};

// What `count` bits that follow a code mean (T.81 F.2.2.1): the upper half of the numbers is positive.
[[gnu::always_inline]] inline int32_t extend(uint32_t bits, uint32_t count) {
  const auto value = static_cast<int32_t>(bits);
  return count != 0 && value < (1 << (count - 1)) ? value - (1 << count) + 1 : value;
}

}  // namespace stoker

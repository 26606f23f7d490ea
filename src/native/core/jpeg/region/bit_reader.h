// The bits of one stretch of entropy-coded JPEG data: from the start of a scan, or a restart marker, to the
// next marker.
//
// In the file a 0x00 is stuffed behind every 0xFF of data, so that markers can be found (ITU-T T.81 F.1.2.3).
// It is taken out a piece at a time into a buffer, from which bits are then loaded eight bytes at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace stoker {

// Bits that are loaded, and where the next ones come from. Small, so that a loop keeps it in registers.
// What kernels call is always inlined (core/base/kernels.h).
struct BitWindow {
  uint64_t bits = 0;            // the next ones, from the top
  uint32_t count = 0;           // how many of them are loaded; those below may be there too
  const uint8_t* at = nullptr;  // the first byte that is not loaded

  static constexpr int kRefilled = 56;

  // At least kRefilled bits are there afterwards.
  [[gnu::always_inline]] void refill() {
    uint64_t word;
    std::memcpy(&word, at, sizeof word);
    bits |= __builtin_bswap64(word) >> count;
    at += (63 - count) >> 3;
    count |= kRefilled;
  }

  // The next `n` bits, 1..32, which a refill() must have loaded.
  [[gnu::always_inline]] uint32_t peek(uint32_t n) const { return static_cast<uint32_t>(bits >> (64 - n)); }
  [[gnu::always_inline]] void drop(uint32_t n) {
    bits <<= n;
    count -= n;
  }
  // As many as the lowest byte says, which is less than 64: the shift needs no other bits taken away first.
  [[gnu::always_inline]] void drop_by_byte(uint64_t step) {
    bits <<= step & 63;
    count -= static_cast<uint8_t>(step);
  }
  [[gnu::always_inline]] uint32_t take(uint32_t n) {
    if (n == 0) return 0;
    const uint32_t value = peek(n);
    drop(n);
    return value;
  }
};

class BitReader {
 public:
  // No MCU takes more: ten blocks, each of 64 steps of at most 31 bits.
  static constexpr size_t kLookahead = 10 * 64 * 31 / 8 + 16;

  BitWindow window;

  // Of the data `bytes`, which may go on behind its last marker.
  void start(std::span<const uint8_t> bytes) {
    in_ = bytes.data();
    in_end_ = in_ + bytes.size();
    limit_ = buffer_;
    window = {0, 0, limit_};
    ended_ = false;
    piece_ = kLookahead + 1024;
    last_byte_ = nullptr;
  }

  // Makes sure that an MCU can be read without a look at the limit; what is behind the end reads as zeros.
  [[gnu::always_inline]] void prepare() {
    if (limit_ - window.at < static_cast<ptrdiff_t>(kLookahead) && !ended_) fill();
  }

  // True once more bits were taken than there are.
  [[gnu::always_inline]] bool overran() const { return ended_ && bits_left() < 0; }

  // Steps over the first bits of a start(); fewer than 8.
  void drop(uint32_t bits) {
    prepare();
    window.refill();
    window.drop(bits);
  }

  // Where the next bit is: in which of the bytes of start(), counted from its top.
  struct Position {
    const uint8_t* byte;
    uint32_t bit;
  };
  Position position();

  // True where only the padding of the last byte is left.
  bool at_end() {
    prepare();
    return ended_ && bits_left() >= 0 && bits_left() < 8;
  }

  // True where the data end with a marker, and not with the bytes.
  bool before_marker() const { return ended_ && in_end_ - in_ >= 2; }
  const uint8_t* marker() const { return in_; }

 private:
  static constexpr size_t kBuffer = size_t{16} << 10;

  [[gnu::always_inline]] int64_t bits_left() const {
    return (limit_ - window.at) * 8 + static_cast<int64_t>(window.count);
  }

  void fill();
  // Copies data until the buffer is full, the bytes end or a marker begins; the end of what was written.
  uint8_t* unstuff(uint8_t* out, uint8_t* out_end);

  const uint8_t* in_ = nullptr;
  const uint8_t* in_end_ = nullptr;
  bool ended_ = true;
  size_t piece_ = kBuffer;              // how much of the buffer is filled next
  const uint8_t* last_byte_ = nullptr;  // the byte that position() gave last, as long as it is in the buffer,
  const uint8_t* last_position_ = nullptr;  // and where it is
  uint8_t* limit_ = nullptr;                // of the buffer's data
  uint8_t buffer_[kBuffer + kLookahead + 8];
};

}  // namespace stoker

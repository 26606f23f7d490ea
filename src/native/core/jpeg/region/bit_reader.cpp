#include "core/jpeg/region/bit_reader.h"

#include <algorithm>

namespace stoker {
namespace {

// In lanes of a byte each, which compilers turn into vectors.
ptrdiff_t count_ff(std::span<const uint8_t> bytes) {
  constexpr size_t kLanes = 16, kMost = 255;
  size_t count = 0;
  while (bytes.size() >= kLanes) {
    uint8_t lanes[kLanes] = {};
    const size_t steps = std::min(bytes.size() / kLanes, kMost);
    for (size_t i = 0; i < steps * kLanes; i += kLanes) {
      for (size_t k = 0; k < kLanes; ++k) lanes[k] = static_cast<uint8_t>(lanes[k] + (bytes[i + k] == 0xFF));
    }
    for (const uint8_t lane : lanes) count += lane;
    bytes = bytes.subspan(steps * kLanes);
  }
  for (const uint8_t byte : bytes) count += byte == 0xFF ? 1 : 0;
  return static_cast<ptrdiff_t>(count);
}

}  // namespace

void BitReader::fill() {
  const auto rest = static_cast<size_t>(limit_ - window.at);
  std::memmove(buffer_, window.at, rest);
  window.at = buffer_;
  last_byte_ = nullptr;
  limit_ = unstuff(buffer_ + rest, buffer_ + piece_);
  piece_ = std::min(2 * piece_, kBuffer);
  if (ended_) std::memset(limit_, 0, kLookahead);
}

// In the file there is a stuffed byte behind each 0xFF, up to where the last piece ends, or from where the
// last position was.
BitReader::Position BitReader::position() {
  const uint8_t* const next = window.at - (window.count + 7) / 8;
  if (last_byte_ == nullptr) {
    last_position_ = in_ - (limit_ - next) - count_ff({next, limit_});
  } else {
    last_position_ += next - last_byte_ + count_ff({last_byte_, next});
  }
  last_byte_ = next;
  return {last_position_, (0 - window.count) % 8};
}

uint8_t* BitReader::unstuff(uint8_t* out, uint8_t* out_end) {
  while (out < out_end) {
    const auto left = static_cast<size_t>(in_end_ - in_), space = static_cast<size_t>(out_end - out);
    const size_t most = std::min(left, space);
    const auto* const ff = static_cast<const uint8_t*>(std::memchr(in_, 0xFF, most));
    const size_t plain = ff == nullptr ? most : static_cast<size_t>(ff - in_);
    std::memcpy(out, in_, plain);
    in_ += plain;
    out += plain;
    if (plain == space) break;
    if (left - plain < 2 || in_[1] != 0) {  // a marker, or data cut short
      ended_ = true;
      break;
    }
    *out++ = 0xFF;
    in_ += 2;
  }
  return out;
}

}  // namespace stoker

#include "core/jpeg/baseline/bit_reader.h"

namespace stoker {

void BitReader::fill() {
  const auto rest = static_cast<size_t>(limit_ - window.at);
  std::memmove(buffer_, window.at, rest);
  window.at = buffer_;
  limit_ = unstuff(buffer_ + rest, buffer_ + kBuffer);
  if (ended_) std::memset(limit_, 0, kLookahead);
}

uint8_t* BitReader::unstuff(uint8_t* out, uint8_t* out_end) {
  // No byte of a word is 0xFF where its complement has no byte 0.
  constexpr uint64_t kOnes = 0x0101010101010101, kTops = 0x8080808080808080;
  while (out_end - out >= 8) {
    if (in_end_ - in_ >= 8) {
      uint64_t word;
      std::memcpy(&word, in_, sizeof word);
      std::memcpy(out, &word, sizeof word);
      if (((~word - kOnes) & word & kTops) == 0) {
        in_ += 8;
        out += 8;
        continue;
      }
    }
    for (int i = 0; i < 8; ++i) {
      if (in_ == in_end_) {
        ended_ = true;
        return out;
      }
      if (*in_ == 0xFF) {
        if (in_end_ - in_ < 2 || in_[1] != 0) {  // a marker, or data cut short
          ended_ = true;
          return out;
        }
        ++in_;
        *out++ = 0xFF;
      } else {
        *out++ = *in_;
      }
      ++in_;
    }
  }
  return out;
}

}  // namespace stoker

// The markers of a JPEG file (ITU-T T.81 table B.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace stoker {

inline constexpr uint8_t kTem = 0x01, kSof0 = 0xC0, kSof1 = 0xC1, kDht = 0xC4, kJpg = 0xC8, kDac = 0xCC,
                         kRst0 = 0xD0, kRst7 = 0xD7, kSoi = 0xD8, kEoi = 0xD9, kSos = 0xDA, kDqt = 0xDB,
                         kDri = 0xDD, kApp0 = 0xE0, kApp1 = 0xE1, kApp2 = 0xE2, kApp14 = 0xEE, kApp15 = 0xEF,
                         kCom = 0xFE;

inline bool is_restart(uint8_t marker) {
  return marker >= kRst0 && marker <= kRst7;
}

// Where the code of the next marker is, from `at` on in entropy-coded data, which hold no 0xFF but stuffed
// ones; the number of bytes when there is none.
inline size_t next_marker_code(std::span<const uint8_t> bytes, size_t at) {
  while (at < bytes.size()) {
    const auto* hit = static_cast<const uint8_t*>(std::memchr(bytes.data() + at, 0xFF, bytes.size() - at));
    if (hit == nullptr) break;
    at = static_cast<size_t>(hit - bytes.data()) + 1;
    if (at < bytes.size() && bytes[at] != 0 && bytes[at] != 0xFF) return at;
  }
  return bytes.size();
}

}  // namespace stoker

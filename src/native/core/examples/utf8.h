// Whether bytes are text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/little_endian.h"

namespace stoker {

// Well-formed UTF-8 as the Unicode standard has it (table 3-7): no overlong forms, no surrogates.
inline bool is_utf8(std::string_view text) {
  constexpr uint64_t kNotAscii = 0x8080808080808080;
  const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data());
  for (size_t i = 0; i < text.size();) {
    if (text.size() - i >= sizeof kNotAscii && (load_le64(bytes + i) & kNotAscii) == 0) {
      i += sizeof kNotAscii;
      continue;
    }
    const uint8_t lead = bytes[i];
    const size_t more = lead < 0x80   ? 0
                        : lead < 0xc2 ? 4
                        : lead < 0xe0 ? 1
                        : lead < 0xf0 ? 2
                        : lead < 0xf5 ? 3
                                      : 4;
    if (more == 4 || text.size() - i <= more) return false;
    for (size_t k = 1; k <= more; ++k) {
      if ((bytes[i + k] & 0xc0) != 0x80) return false;
    }
    if (lead == 0xe0 && bytes[i + 1] < 0xa0) return false;   // overlong
    if (lead == 0xed && bytes[i + 1] >= 0xa0) return false;  // surrogate
    if (lead == 0xf0 && bytes[i + 1] < 0x90) return false;   // overlong
    if (lead == 0xf4 && bytes[i + 1] >= 0x90) return false;  // above U+10FFFF
    i += 1 + more;
  }
  return true;
}

}  // namespace stoker

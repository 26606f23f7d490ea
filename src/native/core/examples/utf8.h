// Whether bytes are text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stoker {

// Well-formed UTF-8 as the Unicode standard has it (table 3-7): no overlong forms, no surrogates.
inline bool is_utf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  for (size_t i = 0; i < text.size();) {
    const uint8_t lead = byte(i);
    const size_t more = lead < 0x80   ? 0
                        : lead < 0xc2 ? 4
                        : lead < 0xe0 ? 1
                        : lead < 0xf0 ? 2
                        : lead < 0xf5 ? 3
                                      : 4;
    if (more == 4 || text.size() - i <= more) return false;
    for (size_t k = 1; k <= more; ++k) {
      if ((byte(i + k) & 0xc0) != 0x80) return false;
    }
    if (lead == 0xe0 && byte(i + 1) < 0xa0) return false;   // overlong
    if (lead == 0xed && byte(i + 1) >= 0xa0) return false;  // surrogate
    if (lead == 0xf0 && byte(i + 1) < 0x90) return false;   // overlong
    if (lead == 0xf4 && byte(i + 1) >= 0x90) return false;  // above U+10FFFF
    i += 1 + more;
  }
  return true;
}

}  // namespace stoker

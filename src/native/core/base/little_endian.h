// Integers as files hold them: least significant byte first. Always inlined, so that kernels may use them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace stoker {

static_assert(std::endian::native == std::endian::little,
              "Stoker needs a little-endian system: it takes numbers from files as they lie in memory.");

[[gnu::always_inline]] inline uint32_t load_le32(const uint8_t* from) {
  uint32_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

[[gnu::always_inline]] inline uint64_t load_le64(const uint8_t* from) {
  uint64_t value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

[[gnu::always_inline]] inline void store_le32(uint32_t value, uint8_t* to) {
  std::memcpy(to, &value, sizeof value);
}

[[gnu::always_inline]] inline void store_le64(uint64_t value, uint8_t* to) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace stoker

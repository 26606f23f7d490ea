// Integers as files hold them: least significant byte first. Always inlined, so that kernels may use them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace stoker {

[[gnu::always_inline]] inline uint32_t load_le32(const uint8_t* from) {
  uint32_t value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap32(value);
  return value;
}

[[gnu::always_inline]] inline uint64_t load_le64(const uint8_t* from) {
  uint64_t value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  return value;
}

[[gnu::always_inline]] inline void store_le32(uint32_t value, uint8_t* to) {
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap32(value);
  std::memcpy(to, &value, sizeof value);
}

[[gnu::always_inline]] inline void store_le64(uint64_t value, uint8_t* to) {
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  std::memcpy(to, &value, sizeof value);
}

}  // namespace stoker

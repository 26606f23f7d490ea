// A number that stands for a name: FNV-1a of 64 bits.
#pragma once

#include <cstdint>
#include <span>

namespace stoker {

inline uint64_t name_digest(std::span<const uint8_t> name) {
  uint64_t digest = 0xCBF29CE484222325;
  for (const uint8_t byte : name) digest = (digest ^ byte) * 0x100000001B3;
  return digest;
}

}  // namespace stoker

// Arithmetic on CRC-32C registers at compile time, and the tables made with it.
//
// A register is a polynomial over GF(2) of degree below 32, modulo the Castagnoli polynomial, with its bits
// reversed: bit 31 is the coefficient of x^0. Feeding a zero byte multiplies it by x^8, and feeding is
// linear. Both the lookup tables and the joining of independent streams follow from these two facts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker::crc32c_polynomial {

inline constexpr uint32_t kReversed = 0x82f63b78U;  // RFC 3720's 0x1edc6f41, reversed
inline constexpr uint32_t kOne = 0x80000000U;       // x^0

constexpr uint32_t times_x(uint32_t a) {
  return (a >> 1) ^ ((a & 1U) != 0 ? kReversed : 0U);
}

constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t term = kOne; term != 0; term >>= 1) {
    if ((b & term) != 0) product ^= a;
    a = times_x(a);
  }
  return product;
}

// x^(8 * bytes): multiplying a register by it feeds that many zero bytes.
constexpr uint32_t zero_bytes(uint64_t bytes) {
  uint32_t square = kOne >> 8;  // x^8
  uint32_t result = kOne;
  for (; bytes != 0; bytes >>= 1) {
    if ((bytes & 1U) != 0) result = multiply(result, square);
    square = multiply(square, square);
  }
  return result;
}

// zero_bytes() of the digits of a number, which are bytes: digit[i].of[value] is that of value << 8 * i.
struct ZeroBytes {
  struct {
    uint32_t of[256] = {};
  } digit[sizeof(uint64_t)];
  constexpr ZeroBytes() {
    uint32_t unit = kOne >> 8;  // x^8
    for (auto& each : digit) {
      each.of[0] = kOne;
      for (unsigned value = 1; value < 256; ++value) each.of[value] = multiply(each.of[value - 1], unit);
      unit = multiply(each.of[255], unit);
    }
  }
};

// Products of a fixed factor with every value of the register's byte number `byte`, counted from its low end.
struct ByteProducts {
  uint32_t of[256] = {};
  constexpr ByteProducts() = default;
  constexpr ByteProducts(uint32_t factor, unsigned byte) {
    for (unsigned bit = 0; bit < 8; ++bit) of[1U << bit] = multiply(factor, 1U << (8 * byte + bit));
    for (unsigned value = 1; value < 256; ++value) {
      const unsigned rest = value & (value - 1);  // without its lowest bit; smaller, so already there
      if (rest != 0) of[value] = of[rest] ^ of[value ^ rest];
    }
  }
};

// Feeds `kBytes` zero bytes to a register with four lookups. Always inlined, so that kernels may use it.
template <size_t kBytes>
struct ZeroFeed {
  ByteProducts products[4] = {
      {zero_bytes(kBytes), 0}, {zero_bytes(kBytes), 1}, {zero_bytes(kBytes), 2}, {zero_bytes(kBytes), 3}};
  [[gnu::always_inline]] constexpr uint32_t operator()(uint32_t a) const {
    return products[0].of[a & 255U] ^ products[1].of[(a >> 8) & 255U] ^ products[2].of[(a >> 16) & 255U] ^
           products[3].of[a >> 24];
  }
};

}  // namespace stoker::crc32c_polynomial

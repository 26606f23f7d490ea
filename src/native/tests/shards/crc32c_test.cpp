// One body of tests, run against every implementation that this processor has.
#include "core/shards/crc32c.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace {

using Extend = decltype(stoker::Crc32cKernels::extend);

std::vector<uint8_t> noise(size_t size, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

uint32_t of(Extend extend, const std::vector<uint8_t>& bytes) {
  return extend(0, bytes.data(), bytes.size());
}

// The definition, one bit at a time.
uint32_t by_definition(uint32_t crc, const uint8_t* data, size_t size) {
  uint32_t state = ~crc;
  for (size_t i = 0; i < size; ++i) {
    state ^= data[i];
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1U) != 0 ? 0x82f63b78U : 0U);
  }
  return ~state;
}

template <typename Body>
void for_each_implementation(Body body) {
  for (const stoker::Crc32cKernels* kernels : stoker::crc32c_kernels()) {
    INFO("implementation: " << std::string(kernels->name));
    body(kernels->extend);
  }
}

std::vector<uint8_t> counting(int first, int step) {
  std::vector<uint8_t> bytes;
  for (int i = 0; i < 32; ++i) bytes.push_back(static_cast<uint8_t>(first + i * step));
  return bytes;
}

// RFC 3720, B.4: a SCSI READ (10) command.
const std::vector<uint8_t> kScsiRead = {0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0,    0, 0, 0, 0,
                                        0x14, 0,    0, 0, 0, 0, 4, 0, 0,    0, 0, 0x14, 0, 0, 0, 0x18,
                                        0x28, 0,    0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0,    0, 0, 0, 0};

}  // namespace

TEST_CASE("crc32c: portable code is always there, and comes last") {
  REQUIRE_FALSE(stoker::crc32c_kernels().empty());
  CHECK(std::string(stoker::crc32c_kernels().back()->name) == "portable");
}

TEST_CASE("crc32c: vectors of RFC 3720 B.4") {
  for_each_implementation([](Extend extend) {
    CHECK(of(extend, std::vector<uint8_t>(32, 0)) == 0x8a9136aaU);
    CHECK(of(extend, std::vector<uint8_t>(32, 0xff)) == 0x62a8ab43U);
    CHECK(of(extend, counting(0, 1)) == 0x46dd794eU);
    CHECK(of(extend, counting(31, -1)) == 0x113fdb5cU);
    CHECK(of(extend, kScsiRead) == 0xd9963a56U);
  });
}

TEST_CASE("crc32c: no bytes change nothing") {
  for_each_implementation([](Extend extend) {
    CHECK(extend(0, nullptr, 0) == 0);
    CHECK(extend(0x12345678U, nullptr, 0) == 0x12345678U);
  });
  CHECK(stoker::crc32c({}) == 0);
}

TEST_CASE("crc32c: equals the definition at every alignment and every length up to 2,000 bytes") {
  const std::vector<uint8_t> bytes = noise(2040);
  for (size_t start = 0; start < 33; ++start) {
    const uint8_t* const data = bytes.data() + start;
    uint32_t expected = 7;  // of the first `size` bytes
    for (size_t size = 0; size <= 2000; ++size) {
      for_each_implementation([&](Extend extend) { REQUIRE(extend(7, data, size) == expected); });
      expected = by_definition(expected, data + size, 1);
    }
  }
}

TEST_CASE("crc32c: equals the definition around the block boundaries of long buffers") {
  const std::vector<uint8_t> bytes = noise(3 * 3 * 8192, 2);
  const size_t triple = 3 * 8192;
  for_each_implementation([&](Extend extend) {
    for (size_t base : {triple, 2 * triple, triple + 768, triple + 2 * 768}) {
      for (size_t size = base - 9; size <= base + 9; ++size) {
        REQUIRE(extend(0, bytes.data() + 3, size) == by_definition(0, bytes.data() + 3, size));
      }
    }
  });
}

TEST_CASE("crc32c: every split of 2,048 bytes gives the CRC of the whole") {
  const std::vector<uint8_t> bytes = noise(2048, 3);
  const uint32_t whole = by_definition(0, bytes.data(), bytes.size());
  for_each_implementation([&](Extend extend) {
    for (size_t split = 0; split <= bytes.size(); ++split) {
      const uint32_t head = extend(0, bytes.data(), split);
      REQUIRE(extend(head, bytes.data() + split, bytes.size() - split) == whole);
    }
  });
  CHECK(stoker::crc32c(bytes) == whole);
}

TEST_CASE("crc32c: the TFRecord mask is a bijection with a known value") {
  // TensorFlow's frame of an empty record begins with eight zero bytes and this masked CRC.
  CHECK(stoker::mask_crc(stoker::crc32c(std::vector<uint8_t>(8, 0))) == 0x07980329U);
  for (uint32_t crc : {0U, 1U, 0x7fffU, 0x8000U, 0xdeadbeefU, 0xffffffffU}) {
    CHECK(stoker::unmask_crc(stoker::mask_crc(crc)) == crc);
  }
}

TEST_CASE("crc32c: a copy has the bytes and the CRC, at every alignment, and touches nothing around it") {
  const std::vector<uint8_t> bytes = noise(3 * 8192 + 3 * 1024 + 900, 4);
  std::vector<size_t> sizes{771, 3 * 1024 + 5, bytes.size() - 9};
  for (size_t size = 0; size < 300; ++size) sizes.push_back(size);
  for (size_t size = 2000; size < 2200; ++size) sizes.push_back(size);
  for (const stoker::Crc32cKernels* kernels : stoker::crc32c_kernels()) {
    for (size_t size : sizes) {
      for (size_t start = 0; start < 33; ++start) {
        std::vector<uint8_t> out(size + 66, 0xee);
        const uint8_t* const data = bytes.data() + start % 9;
        const uint32_t crc = kernels->copy(7, data, size, out.data() + start);
        std::vector<uint8_t> expected(out.size(), 0xee);
        std::copy_n(data, size, expected.begin() + static_cast<std::ptrdiff_t>(start));
        REQUIRE(crc == by_definition(7, data, size));
        REQUIRE(out == expected);
      }
    }
  }
}

TEST_CASE("crc32c: two sums are joined to that of all bytes") {
  const std::vector<uint8_t> bytes = noise(70'000, 5);
  const uint32_t whole = stoker::crc32c(bytes);
  const std::span<const uint8_t> all(bytes);
  for (size_t split : {size_t{0}, size_t{1}, size_t{65'536}, size_t{12'345}, bytes.size()}) {
    CHECK(stoker::crc32c_join(stoker::crc32c(all.first(split)), stoker::crc32c(all.subspan(split)),
                              bytes.size() - split) == whole);
  }
}

TEST_CASE("crc32c: joining more bytes than there can be is joining some and then the others") {
  std::mt19937_64 chance(17);
  for (int i = 0; i < 200; ++i) {
    const uint64_t some = chance() >> 1 >> i % 60, others = chance() >> 1 >> i % 50;
    CHECK(stoker::crc32c_join(stoker::crc32c_join(17, 18, some), 19, others) ==
          stoker::crc32c_join(17, stoker::crc32c_join(18, 19, others), some + others));
  }
}

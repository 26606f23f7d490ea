#include "core/png/filter_kernels.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "tests/rounds.h"

namespace stoker {
namespace {

using Row = std::vector<uint8_t>;

int paeth(int a, int b, int c) {
  const int p = a + b - c, pa = std::abs(p - a), pb = std::abs(p - b), pc = std::abs(p - c);
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

// As the specification says it, byte by byte.
Row unfiltered(int filter, const uint8_t* bytes, const Row& above, size_t pixel_bytes) {
  Row row(above.size());
  for (size_t x = 0; x < row.size(); ++x) {
    const int a = x >= pixel_bytes ? row[x - pixel_bytes] : 0, b = above[x];
    const int c = x >= pixel_bytes ? above[x - pixel_bytes] : 0;
    const int predicted[] = {0, a, b, (a + b) / 2, paeth(a, b, c)};
    row[x] = static_cast<uint8_t>(bytes[x] + predicted[filter]);
  }
  return row;
}

// Bytes of a kind that is random, or of few values, which makes neighbours equal.
void fill(Row& bytes, std::mt19937& random) {
  const bool few = random() % 3 == 0;
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(few ? random() % 4 * 85 : random());
}

void check_rows(const FilterKernels& kernels, size_t pixel_bytes, size_t pixels, std::mt19937& random) {
  const size_t bytes = pixels * pixel_bytes, line = bytes + 1 + random() % 3;
  const size_t count = 1 + random() % filter_rows(pixel_bytes), stride = bytes + kFilterPadding;
  Row lines(line * count + 2 * kFilterPadding), above(bytes), out(stride * count + 2 * kFilterPadding);
  fill(lines, random);
  fill(above, random);
  fill(out, random);
  uint8_t* const first = lines.data() + kFilterPadding;
  for (size_t y = 0; y < count; ++y) first[y * line] = static_cast<uint8_t>(random() % (kLastFilter + 1));
  Row readable = above;
  readable.resize(bytes + kFilterPadding);
  kernels.undo(pixel_bytes, {first, line, count}, readable.data(), pixels, out.data() + kFilterPadding,
               stride);
  for (size_t y = 0; y < count; ++y) {
    CAPTURE(y);
    above = unfiltered(first[y * line], first + y * line + 1, above, pixel_bytes);
    const uint8_t* const given = out.data() + kFilterPadding + y * stride;
    REQUIRE(Row(given, given + bytes) == above);
  }
}

TEST_CASE("all kernels undo the filters of PNG as its specification says") {
  std::mt19937 random(1);
  for (const FilterKernels* kernels : filter_kernels()) {
    CAPTURE(kernels->name);
    for (const size_t pixel_bytes : {1, 2, 3, 4, 6, 8}) {
      CAPTURE(pixel_bytes);
      for (size_t pixels = 1; pixels <= 80; ++pixels) {
        CAPTURE(pixels);
        for (int i = 0; i < 8; ++i) check_rows(*kernels, pixel_bytes, pixels, random);
      }
    }
  }
}

// In a row of pairs of pixels, the second of each has `a` on its left, `c` in its corner, and each b above.
TEST_CASE("all kernels choose the neighbour that Paeth does, whatever the three are") {
  constexpr size_t kPixels = 2 * 256;
  Row line(1 + kPixels + 2 * kFilterPadding), above(kPixels + kFilterPadding), expected(kPixels);
  Row out(kPixels + 2 * kFilterPadding);
  uint8_t* const bytes = line.data() + kFilterPadding + 1;
  bytes[-1] = 4;
  for (int a = 0; a < 256; ++a) {
    for (int c = 0; c < 256; c += tests::kThinned) {
      for (size_t x = 0; x < kPixels; x += 2) {
        const int b = static_cast<int>(x / 2), left = x > 0 ? expected[x - 1] : 0;
        above[x] = static_cast<uint8_t>(c);
        above[x + 1] = static_cast<uint8_t>(b);
        bytes[x] = static_cast<uint8_t>(a - paeth(left, c, x > 0 ? above[x - 1] : 0));
        expected[x] = static_cast<uint8_t>(a);
        expected[x + 1] = static_cast<uint8_t>(paeth(a, b, c));
      }
      for (const FilterKernels* kernels : filter_kernels()) {
        uint8_t* const given = out.data() + kFilterPadding;
        kernels->undo(1, {bytes - 1, 1 + kPixels, 1}, above.data(), kPixels, given, kPixels);
        if (Row(given, given + kPixels) == expected) continue;
        FAIL(kernels->name << ", a " << a << ", c " << c);
      }
    }
  }
}

}  // namespace
}  // namespace stoker

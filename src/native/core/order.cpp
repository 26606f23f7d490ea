#include "core/order.h"

#include <cmath>
#include <string>

#include "core/errors.h"
#include "core/philox.h"

namespace stoker {
namespace {

uint64_t ceil_sqrt(uint64_t n) {
  auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(n)));
  while (root * root >= n && root > 0) --root;  // the double may be off by one either way
  while (root * root < n) ++root;
  return root;
}

// Steele, Lea and Flood's 64-bit finaliser (SplittableRandom, OOPSLA 2014).
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// 0..bound-1 from the high bits of x, without a division.
uint64_t reduce(uint64_t x, uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{x} * bound) >> 64);
}

uint64_t add_modulo(uint64_t x, uint64_t y, uint64_t bound) {
  const uint64_t sum = x + y;  // both < bound < 2^32
  return sum >= bound ? sum - bound : sum;
}

}  // namespace

Permutation::Permutation(uint64_t n, uint64_t seed, uint64_t epoch) : n_(n) {
  if (n < 1 || n >= uint64_t{1} << 62) {
    throw Error(ErrorCode::kBadArgument, "An order needs 1 <= n < 2^62 items, not " + std::to_string(n));
  }
  columns_ = ceil_sqrt(n);
  rows_ = (n + columns_ - 1) / columns_;
  for (uint32_t i = 0; i < kRounds; ++i) {
    const auto words =
        philox({static_cast<uint32_t>(epoch), static_cast<uint32_t>(epoch >> 32), i, 0x6F726472 /* "ordr" */},
               {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
    keys_[i] = uint64_t{words[0]} << 32 | words[1];
  }
}

uint64_t Permutation::operator()(uint64_t position) const {
  uint64_t cell = position;
  do {
    uint64_t row = cell / columns_, column = cell % columns_;
    for (int i = 0; i < kRounds; i += 2) {
      row = add_modulo(row, reduce(mix(column ^ keys_[i]), rows_), rows_);
      column = add_modulo(column, reduce(mix(row ^ keys_[i + 1]), columns_), columns_);
    }
    cell = row * columns_ + column;
  } while (cell >= n_);
  return cell;
}

}  // namespace stoker

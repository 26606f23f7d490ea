// The order of an epoch: a stateless bijection on 0..n-1, in constant memory.
#pragma once

#include <cstdint>

namespace stoker {

// A Feistel network on the grid of a x b >= n cells, a = ceil(sqrt(n)), with cycle walking for the few cells
// past n (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). Every round adds a keyed
// hash of one coordinate to the other, so every round, and the whole, is one to one. See docs/determinism.md.
class Permutation {
 public:
  // 1 <= n < 2^62.
  Permutation(uint64_t n, uint64_t seed, uint64_t epoch);

  // The item at `position`; position < n.
  uint64_t operator()(uint64_t position) const;

  uint64_t size() const { return n_; }

 private:
  static constexpr int kRounds = 8;

  uint64_t n_;
  uint64_t rows_;
  uint64_t columns_;
  uint64_t keys_[kRounds];
};

}  // namespace stoker

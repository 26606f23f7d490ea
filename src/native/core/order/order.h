// The order of an epoch: a stateless bijection on 0..n-1, in constant memory.
#pragma once

#include <cstdint>
#include <span>

namespace stoker {

// A Feistel network on the grid of a x b >= n cells, a = ceil(sqrt(n)), with cycle walking for the few cells
// past n (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). Every round adds a keyed
// hash of one coordinate to the other, so every round, and the whole, is one to one:
// docs/explanation/determinism.md.
class Permutation {
 public:
  // 1 <= n < 2^62.
  Permutation(uint64_t n, uint64_t seed, uint64_t epoch);

  // The item at `position`; position < n.
  uint64_t operator()(uint64_t position) const;

  // Writes the items at positions start .. start + out.size() - 1, all below n. Several are computed at a
  // time, since each step of one waits for the step before.
  void take(uint64_t start, std::span<uint64_t> out) const;

  // The position of an item: the inverse; item < n.
  uint64_t position_of(uint64_t item) const;

  uint64_t size() const { return n_; }

 private:
  static constexpr int kRounds = 8;

  // Moves cells to others, given by their rows and columns.
  template <size_t kCells>
  void move(uint64_t (&rows)[kCells], uint64_t (&columns)[kCells]) const;

  uint64_t n_;
  uint64_t rows_;
  uint64_t columns_;
  uint64_t keys_[kRounds];
};

// The same for storage that wants long reads: contiguous blocks are visited in a random order, and samples
// are shuffled within windows of consecutive visits. Constant memory, and any position costs the same. The
// last block may be short: positions are those of a layout where every visit has `block` cells, with the
// cells that the short one lacks cut out ("the hole"). See docs/explanation/determinism.md.
class BlockPermutation {
 public:
  // 1 <= n < 2^62; block and window at least 1, without upper bounds.
  BlockPermutation(uint64_t n, uint64_t block, uint64_t window, uint64_t seed, uint64_t epoch);

  // Writes the items at positions start .. start + out.size() - 1, all below n.
  void take(uint64_t start, std::span<uint64_t> out) const;

  // The position of an item: the inverse; item < n.
  uint64_t position_of(uint64_t item) const;

 private:
  // Positions first .. last - 1, whose samples are shuffled among each other.
  struct Window {
    uint64_t number;
    uint64_t first;
    uint64_t last;
  };
  Window window_at(uint64_t cell) const;

  uint64_t cell_of(uint64_t position) const { return position < hole_ ? position : position + missing_; }
  uint64_t position_at(uint64_t border) const { return border <= hole_ ? border : border - missing_; }

  uint64_t n_;
  uint64_t block_;
  uint64_t window_cells_;
  Permutation visits_;    // block of each visit
  uint64_t window_seed_;  // of the orders within windows
  uint64_t missing_;      // cells that the last block lacks
  uint64_t hole_;         // the first of them
};

}  // namespace stoker

#include "core/order/order.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "core/base/errors.h"
#include "core/order/philox.h"
#include "core/order/sampling.h"

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

uint64_t add_modulo(uint64_t x, uint64_t y, uint64_t bound) {
  const uint64_t sum = x + y;  // both < bound < 2^32
  return sum >= bound ? sum - bound : sum;
}

uint64_t subtract_modulo(uint64_t x, uint64_t y, uint64_t bound) {
  return x >= y ? x - y : x + bound - y;
}

uint64_t check_items(uint64_t n) {
  if (n < 1 || n >= uint64_t{1} << 62) {
    throw Error(ErrorCode::kBadArgument, "An order needs 1 <= n < 2^62 items, not " + std::to_string(n));
  }
  return n;
}

// Samples of a block: no more than there are, which changes nothing and keeps products small.
uint64_t check_block(uint64_t n, uint64_t block, uint64_t window) {
  if (block < 1 || window < 1) {
    throw Error(ErrorCode::kBadArgument, "A block shuffle needs a block and a window of at least 1, not " +
                                             std::to_string(block) + " and " + std::to_string(window));
  }
  return std::min(block, check_items(n));
}

uint64_t divide_up(uint64_t x, uint64_t y) {
  return (x + y - 1) / y;
}

// Seeds of an epoch's block shuffle: of the order of the blocks, and of the orders within the windows.
std::array<uint64_t, 2> block_seeds(uint64_t seed, uint64_t epoch) {
  const auto words =
      philox({static_cast<uint32_t>(epoch), static_cast<uint32_t>(epoch >> 32), 0, 0x626C6F6B /* "blok" */},
             {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return {uint64_t{words[0]} << 32 | words[1], uint64_t{words[2]} << 32 | words[3]};
}

}  // namespace

Permutation::Permutation(uint64_t n, uint64_t seed, uint64_t epoch) : n_(check_items(n)) {
  columns_ = ceil_sqrt(n);
  rows_ = divide_up(n, columns_);
  for (uint32_t i = 0; i < kRounds; ++i) {
    const auto words =
        philox({static_cast<uint32_t>(epoch), static_cast<uint32_t>(epoch >> 32), i, 0x6F726472 /* "ordr" */},
               {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
    keys_[i] = uint64_t{words[0]} << 32 | words[1];
  }
}

template <size_t kCells>
void Permutation::move(uint64_t (&rows)[kCells], uint64_t (&columns)[kCells]) const {
  for (int i = 0; i < kRounds; i += 2) {
    for (size_t k = 0; k < kCells; ++k)
      rows[k] = add_modulo(rows[k], reduce(mix(columns[k] ^ keys_[i]), rows_), rows_);
    for (size_t k = 0; k < kCells; ++k)
      columns[k] = add_modulo(columns[k], reduce(mix(rows[k] ^ keys_[i + 1]), columns_), columns_);
  }
}

uint64_t Permutation::operator()(uint64_t position) const {
  uint64_t cell = position;
  do {
    uint64_t row[] = {cell / columns_}, column[] = {cell % columns_};
    move(row, column);
    cell = row[0] * columns_ + column[0];
  } while (cell >= n_);
  return cell;
}

void Permutation::take(uint64_t start, std::span<uint64_t> out) const {
  constexpr size_t kCells = 4;
  uint64_t rows[kCells], columns[kCells];
  uint64_t row = start / columns_, column = start % columns_;
  size_t done = 0;
  for (; out.size() - done >= kCells; done += kCells) {
    for (size_t k = 0; k < kCells; ++k) {
      rows[k] = row, columns[k] = column;
      if (++column == columns_) ++row, column = 0;
    }
    move(rows, columns);
    for (size_t k = 0; k < kCells; ++k) {
      const uint64_t cell = rows[k] * columns_ + columns[k];
      out[done + k] = cell < n_ ? cell : (*this)(cell);
    }
  }
  for (; done < out.size(); ++done) out[done] = (*this)(start + done);
}

uint64_t Permutation::position_of(uint64_t item) const {
  uint64_t cell = item;
  do {
    uint64_t row = cell / columns_, column = cell % columns_;
    for (int i = kRounds - 2; i >= 0; i -= 2) {
      column = subtract_modulo(column, reduce(mix(row ^ keys_[i + 1]), columns_), columns_);
      row = subtract_modulo(row, reduce(mix(column ^ keys_[i]), rows_), rows_);
    }
    cell = row * columns_ + column;
  } while (cell >= n_);
  return cell;
}

BlockPermutation::BlockPermutation(uint64_t n, uint64_t block, uint64_t window, uint64_t seed, uint64_t epoch)
    : n_(n),
      block_(check_block(n, block, window)),
      window_cells_(std::min(window, divide_up(n, block_)) * block_),
      visits_(divide_up(n, block_), block_seeds(seed, epoch)[0], 0),
      window_seed_(block_seeds(seed, epoch)[1]),
      missing_(visits_.size() * block_ - n),
      hole_(visits_.position_of(visits_.size() - 1) * block_ + block_ - missing_) {}

void BlockPermutation::take(uint64_t start, std::span<uint64_t> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const Window window = window_at(cell_of(start + done));
    const Permutation within(window.last - window.first, window_seed_, window.number);
    const size_t end = std::min<uint64_t>(out.size(), window.last - start);
    for (; done < end; ++done) {
      const uint64_t cell = cell_of(window.first + within(start + done - window.first));
      out[done] = visits_(cell / block_) * block_ + cell % block_;
    }
  }
}

uint64_t BlockPermutation::position_of(uint64_t item) const {
  const uint64_t cell = visits_.position_of(item / block_) * block_ + item % block_;
  const Window window = window_at(cell);
  const Permutation within(window.last - window.first, window_seed_, window.number);
  return window.first + within.position_of(position_at(cell) - window.first);
}

BlockPermutation::Window BlockPermutation::window_at(uint64_t cell) const {
  const uint64_t number = cell / window_cells_;
  return {number, position_at(number * window_cells_),
          std::min(position_at((number + 1) * window_cells_), n_)};
}

}  // namespace stoker

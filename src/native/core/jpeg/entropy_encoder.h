// The entropy-coded data of a baseline scan, with Huffman tables made for it (ITU-T T.81 annex F.1.2).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/jpeg/optimal_huffman.h"

namespace stoker {

// Blocks become symbols with additional bits, which are counted; the counts make the tables, and the symbols
// are then written with these.
class EntropyEncoder {
 public:
  static constexpr size_t kMostComponents = 3;

  // Of components: the first has tables of its own, and others share theirs. `blocks` is the most that come.
  void start(size_t components, size_t blocks);

  // The next block: 64 values in rows, |DC difference| < 2048 and others < 1024.
  void add(const int16_t* values, size_t component);

  // A restart marker comes before the next block.
  void restart();

  // Of what was added. One DC table and one AC table for each set of tables.
  struct Tables {
    HuffmanCode dc, ac;
  };
  size_t sets() const { return sets_; }
  const Tables& tables(size_t set) const { return tables_[set]; }
  void make_tables();

  // Appends the data, with restart markers.
  void write(std::vector<uint8_t>& to);

 private:
  static constexpr size_t kSets = 2;
  // A symbol of one of the tables: DC and AC of the first set, DC and AC of the second.
  static constexpr size_t kIndices = 2 * kSets * kHuffmanSymbols;

  size_t sets_ = 0;
  std::unique_ptr<uint32_t[]> tokens_;  // index of a symbol, and its additional bits from bit 16 on
  uint32_t* end_ = nullptr;
  std::vector<size_t> restarts_;  // indices into the tokens
  std::array<int32_t, kMostComponents> predictions_{};
  std::array<uint32_t, kIndices> counts_{};
  std::array<Tables, kSets> tables_{};
  std::array<uint32_t, kIndices> codes_{};  // see write()
};

}  // namespace stoker

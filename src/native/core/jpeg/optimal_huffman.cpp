#include "core/jpeg/optimal_huffman.h"

#include <algorithm>
#include <array>

namespace stoker {
namespace {

constexpr size_t kReserved =
    kHuffmanSymbols;  // a symbol that takes the code of ones alone, which is not allowed
constexpr size_t kLeaves = kHuffmanSymbols + 1;
constexpr size_t kMostBits = 16;
constexpr uint32_t kSymbolBits = 9;

// A tree of the forest that becomes one tree. In order: the least count first, of equal ones the tree whose
// symbol is the largest.
class Tree {
 public:
  Tree() = default;
  Tree(uint64_t count, size_t symbol, size_t node)
      : key_(count << kSymbolBits | (kReserved - symbol)), node_(static_cast<uint16_t>(node)) {}

  uint64_t count() const { return key_ >> kSymbolBits; }
  size_t symbol() const { return kReserved - (key_ & ((1U << kSymbolBits) - 1)); }
  size_t node() const { return node_; }
  bool operator<(const Tree& other) const { return key_ < other.key_; }

 private:
  uint64_t key_ = 0;
  uint16_t node_ = 0;
};

// Trees in order, which are taken from the front.
struct Queue {
  std::array<Tree, kLeaves> trees;
  size_t first = 0, end = 0;

  bool empty() const { return first == end; }
  // A tree that is made later seldom has a lower count.
  void insert(Tree tree) {
    size_t at = end++;
    for (; at > first && tree < trees[at - 1]; --at) trees[at] = trees[at - 1];
    trees[at] = tree;
  }
};

Tree take_least(Queue& a, Queue& b) {
  Queue& from = b.empty() || (!a.empty() && a.trees[a.first] < b.trees[b.first]) ? a : b;
  return from.trees[from.first++];
}

// Bits of the code of each symbol, before they are limited.
using Depths = std::array<uint16_t, kLeaves>;

Depths depths_of(std::span<const uint32_t, kHuffmanSymbols> counts) {
  Queue leaves, joined;
  leaves.trees[leaves.end++] = Tree(1, kReserved, kReserved);
  for (size_t symbol = 0; symbol < kHuffmanSymbols; ++symbol) {
    if (counts[symbol] != 0) leaves.trees[leaves.end++] = Tree(counts[symbol], symbol, symbol);
  }
  std::sort(leaves.trees.begin(), leaves.trees.begin() + leaves.end);
  std::array<uint16_t, 2 * kLeaves> parents;
  size_t nodes = kLeaves;
  for (size_t left = leaves.end; left > 1; --left) {
    const Tree least = take_least(leaves, joined), next = take_least(leaves, joined);
    parents[least.node()] = parents[next.node()] = static_cast<uint16_t>(nodes);
    joined.insert(Tree(least.count() + next.count(), least.symbol(), nodes++));
  }
  std::array<uint16_t, 2 * kLeaves> depths;
  depths[nodes - 1] = 0;
  for (size_t node = nodes - 1; node-- > kLeaves;) depths[node] = depths[parents[node]] + 1;
  Depths lengths{};
  for (size_t i = 0; i < leaves.end; ++i) {
    const size_t leaf = leaves.trees[i].node();
    lengths[leaf] = depths[parents[leaf]] + 1;
  }
  return lengths;
}

}  // namespace

HuffmanCode optimal_huffman(std::span<const uint32_t, kHuffmanSymbols> counts) {
  const Depths depths = depths_of(counts);
  std::array<uint16_t, kLeaves + 1> of_depth{};
  for (const uint16_t depth : depths) ++of_depth[depth];
  of_depth[0] = 0;
  size_t longest = kLeaves;
  while (of_depth[longest] == 0) --longest;

  HuffmanCode code;
  std::array<uint16_t, kLeaves + 1> next{};  // index of the next symbol of a depth
  for (size_t depth = 1; depth < longest; ++depth) next[depth + 1] = next[depth] + of_depth[depth];
  // The reserved symbol is the last of the deepest.
  for (size_t symbol = 0; symbol < kHuffmanSymbols; ++symbol) {
    if (depths[symbol] == 0) continue;
    code.symbols[next[depths[symbol]]++] = static_cast<uint8_t>(symbol);
  }

  // Two codes that are too long and differ in their last bit: one becomes a bit shorter, and the other shares
  // the beginning of a code that is shorter yet, which becomes one bit longer.
  for (; longest > kMostBits; --longest) {
    while (of_depth[longest] > 0) {
      size_t shorter = longest - 2;
      while (of_depth[shorter] == 0) --shorter;
      of_depth[longest] -= 2;
      ++of_depth[longest - 1];
      of_depth[shorter + 1] += 2;
      --of_depth[shorter];
    }
  }
  while (of_depth[longest] == 0) --longest;
  --of_depth[longest];
  for (size_t bits = 1; bits <= kMostBits; ++bits)
    code.counts[bits - 1] = static_cast<uint8_t>(of_depth[bits]);
  return code;
}

}  // namespace stoker

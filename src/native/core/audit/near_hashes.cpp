#include "core/audit/near_hashes.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>

#include "core/audit/near_kernels.h"
#include "core/base/errors.h"
#include "core/threads/share_work.h"

namespace stoker {
namespace {

constexpr int kHashBits = 64;
constexpr size_t kMany = 400'000;  // hashes, of which keys of 16 bits make less work than keys of 8
constexpr size_t kPairsAtOnce = 1024;

// Sets that are merged (union-find); the root of each set is its smallest member.
class Sets {
 public:
  explicit Sets(size_t size) : parents_(size) { std::iota(parents_.begin(), parents_.end(), 0U); }

  uint32_t first_of(uint32_t item) {
    while (parents_[item] != item) item = parents_[item] = parents_[parents_[item]];
    return item;
  }

  void join(uint32_t a, uint32_t b) {
    const uint32_t first = first_of(a), second = first_of(b);
    parents_[std::max(first, second)] = std::min(first, second);
  }

  std::vector<uint32_t> firsts() && {
    for (size_t i = 0; i < parents_.size(); ++i) parents_[i] = parents_[parents_[i]];  // parents come before
    return std::move(parents_);
  }

 private:
  std::vector<uint32_t> parents_;
};

// How many steps are between two hashes that differ in `bits`: one from 0 to 1, and one to strong and back.
int steps(uint64_t bits, uint64_t strong, uint64_t other) {
  return std::popcount(bits) + 2 * std::popcount(bits & strong & other) + std::popcount(strong ^ other);
}

// Some bits of a hash, and the bits after them, cyclically.
struct Key {
  int first;
  int bits;

  size_t count() const { return size_t{1} << bits; }
  uint32_t of(uint64_t hash) const { return static_cast<uint32_t>(std::rotr(hash, first) & (count() - 1)); }
  uint64_t rest_of(uint64_t hash) const { return std::rotr(hash, first) >> bits; }
};

// Hashes in blocks of those that have the same key.
class Table {
 public:
  Table(std::span<const uint64_t> hashes, Key key) : starts_(key.count() + 1) {
    std::vector<uint32_t> counts(key.count());
    for (const uint64_t hash : hashes) ++counts[key.of(hash)];
    for (size_t i = 0; i < counts.size(); ++i) {
      starts_[i + 1] = starts_[i] + static_cast<uint32_t>((counts[i] + kBlockHashes - 1) / kBlockHashes);
    }
    blocks_.resize(starts_.back());
    for (HashBlock& block : blocks_) std::fill_n(block.indices, kBlockHashes, kNone);
    std::fill(counts.begin(), counts.end(), 0U);
    for (size_t i = 0; i < hashes.size(); ++i) {
      const size_t at = counts[key.of(hashes[i])]++;
      HashBlock& block = blocks_[starts_[key.of(hashes[i])] + at / kBlockHashes];
      block.indices[at % kBlockHashes] = static_cast<uint32_t>(i);
      for (size_t nibble = 0; nibble < kBlockNibbles; ++nibble) {
        block.nibbles[nibble][at % kBlockHashes] = key.rest_of(hashes[i]) >> (4 * nibble) & 15;
      }
    }
  }

  bool is_empty(uint32_t key) const { return starts_[key] == starts_[key + 1]; }

  // Calls `use` with the number of the block and the index of each hash that has a key.
  template <typename Use>
  void for_each(uint32_t key, const Use& use) const {
    for (size_t at = starts_[key]; at < starts_[key + 1]; ++at) {
      for (const uint32_t index : blocks_[at].indices) {
        if (index != kNone) use(at, index);
      }
    }
  }

  // Calls `use` with the index of each hash that has a key and is near in the 48 bits that blocks hold;
  // from block `at` on, if that is among those of the key.
  template <typename Use>
  void find_near(uint64_t rest, uint32_t key, size_t at, int distance, const Use& use) const {
    const size_t end = starts_[key + 1];
    at = std::max<size_t>(at, starts_[key]);
    for (; const uint32_t near = next_near_(rest, blocks_.data(), at, end, distance); ++at) {
      for (uint32_t left = near; left != 0; left &= left - 1) {
        const uint32_t index = blocks_[at].indices[std::countr_zero(left)];
        if (index != kNone) use(index);
      }
    }
  }

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  decltype(NearKernels::next) next_near_ = near_kernels().front()->next;
  std::vector<uint32_t> starts_;  // of keys, in blocks
  std::vector<HashBlock> blocks_;
};

// All keys of which few bits are set.
std::vector<uint32_t> keys_of_few_bits(size_t count, int most) {
  std::vector<uint32_t> keys;
  for (uint32_t key = 0; key < count; ++key) {
    if (std::popcount(key) <= most) keys.push_back(key);
  }
  return keys;
}

// A hash to which others are compared: its block in a table, its index, and what follows its key.
struct Wanted {
  size_t block;
  uint32_t index;
  uint64_t rest;
};

}  // namespace

std::vector<uint32_t> near_hashes(std::span<const uint64_t> hashes, std::span<const uint64_t> strong,
                                  int distance, uint64_t mirrored, size_t threads) {
  if (distance < 0 || distance > kMostDistance) {
    throw Error(ErrorCode::kBadArgument, "A distance of " + std::to_string(distance) +
                                             " bits; it must be 0.." + std::to_string(kMostDistance));
  }
  if (strong.size() != hashes.size()) {
    throw Error(ErrorCode::kBadArgument, "As many hashes as there are of their strong bits are needed");
  }
  if (hashes.size() >= std::numeric_limits<uint32_t>::max()) {
    throw Error(ErrorCode::kBadArgument, std::to_string(hashes.size()) + " hashes are too many");
  }
  Sets sets(hashes.size());
  std::mutex mutex;
  std::vector<uint64_t> flips{0};
  if (mirrored != 0) flips.push_back(mirrored);
  const int parts = hashes.size() < kMany ? 8 : 4;
  for (int part = 0; part < parts && part <= distance; ++part) {
    const Key key{part * kHashBits / parts, kHashBits / parts};
    const Table table(hashes, key);
    const std::vector<uint32_t> changes = keys_of_few_bits(key.count(), (distance - part) / parts);
    std::atomic<uint32_t> next{0};
    share_work(threads, [&] {
      std::vector<std::pair<uint32_t, uint32_t>> pairs;
      const auto join = [&] {
        const std::lock_guard lock(mutex);
        for (const auto& [a, b] : pairs) sets.join(a, b);
        pairs.clear();
      };
      std::vector<Wanted> all;
      for (uint32_t at = next++; at < key.count(); at = next++) {
        all.clear();
        table.for_each(at, [&](size_t block, uint32_t index) {
          all.push_back({block, index, key.rest_of(hashes[index])});
        });
        if (all.empty()) continue;
        for (const uint64_t flipped : flips) {
          for (const uint32_t change : changes) {
            const uint32_t other = at ^ change ^ key.of(flipped);
            if (other < at || table.is_empty(other)) continue;  // compared from there
            const int left = distance - std::popcount(change);
            for (const Wanted& wanted : all) {
              const auto compare = [&](uint32_t index) {
                const uint64_t bits = hashes[wanted.index] ^ hashes[index] ^ flipped;
                if (index == wanted.index || std::popcount(bits) > distance) return;
                if (steps(bits, strong[wanted.index], strong[index]) > kMostSteps) return;
                pairs.emplace_back(wanted.index, index);
                if (pairs.size() == kPairsAtOnce) join();
              };
              const size_t from = other == at ? wanted.block : 0;
              table.find_near(wanted.rest ^ key.rest_of(flipped), other, from, left, compare);
            }
          }
        }
      }
      join();
    });
  }
  return std::move(sets).firsts();
}

}  // namespace stoker

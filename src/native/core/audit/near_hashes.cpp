#include "core/audit/near_hashes.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
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
constexpr int kMostKeyBits = 24;
constexpr size_t kPairsAtOnce = 1024;

// What a hash costs where it is put into a table, in comparisons of two.
constexpr double kPutCost = 12;

// Sets that grow together; the first of each is the smallest.
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

// Some bits of a hash, end to end.
class Key {
 public:
  // Blocks `chosen`, ascending, of so many that a hash has.
  Key(const std::vector<int>& chosen, int blocks) {
    for (const int block : chosen) add(block * kHashBits / blocks, (block + 1) * kHashBits / blocks);
  }

  void add(int first, int end) {
    parts_.push_back({first, bits_, (uint32_t{1} << (end - first)) - 1});
    bits_ += end - first;
  }

  size_t count() const { return size_t{1} << bits_; }

  uint32_t of(uint64_t hash) const {
    uint32_t key = 0;
    for (const Part& part : parts_) key |= (static_cast<uint32_t>(hash >> part.first) & part.mask) << part.at;
    return key;
  }

 private:
  struct Part {
    int first;
    int at;
    uint32_t mask;
  };

  std::vector<Part> parts_;
  int bits_ = 0;
};

// Hashes, and their indices.
struct Items {
  std::vector<uint64_t> hashes;
  std::vector<uint32_t> indices;
};

// Hashes in the order of their keys. It keeps its memory.
class Table {
 public:
  // All `indices`, or those from 0 on if there are none.
  void fill(std::span<const uint64_t> hashes, std::span<const uint32_t> indices, const Key& key) {
    starts_.assign(key.count() + 1, 0);
    hashes_.resize(hashes.size());
    indices_.resize(hashes.size());
    for (const uint64_t hash : hashes) ++starts_[size_t{key.of(hash)} + 1];
    std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
    next_.assign(starts_.begin(), starts_.end() - 1);
    for (size_t i = 0; i < hashes.size(); ++i) {
      const uint32_t at = next_[key.of(hashes[i])]++;
      hashes_[at] = hashes[i];
      indices_[at] = indices.empty() ? static_cast<uint32_t>(i) : indices[i];
    }
  }

  // Appends those that have a key.
  void copy(size_t key, Items& items) const {
    items.hashes.insert(items.hashes.end(), hashes_.begin() + starts_[key],
                        hashes_.begin() + starts_[key + 1]);
    items.indices.insert(items.indices.end(), indices_.begin() + starts_[key],
                         indices_.begin() + starts_[key + 1]);
  }

  // Calls `found` with the indices and the differing bits of each pair of which one has this key, and the
  // other, turned round in the bits of `flipped`, too; of which `flipped_key` is the key.
  template <typename Found>
  void find_near(uint32_t key, uint64_t flipped, uint32_t flipped_key, int distance,
                 const Found& found) const {
    const uint32_t other = key ^ flipped_key;
    if (other < key) return;  // found from there
    for (uint32_t i = starts_[key]; i < starts_[size_t{key} + 1]; ++i) {
      const uint64_t wanted = hashes_[i] ^ flipped;
      const size_t end = starts_[size_t{other} + 1];
      for (size_t j = other == key ? i + 1 : starts_[other];
           (j = next_near_(wanted, hashes_.data(), j, end, distance)) < end; ++j) {
        found(indices_[i], indices_[j], wanted ^ hashes_[j]);
      }
    }
  }

 private:
  decltype(NearKernels::next) next_near_ = near_kernels().front()->next;
  std::vector<uint32_t> starts_, next_;
  std::vector<uint64_t> hashes_;
  std::vector<uint32_t> indices_;
};

// All choices of some of the blocks from `from` on.
std::vector<std::vector<int>> choices(int from, int blocks, int some) {
  std::vector<bool> is_chosen(static_cast<size_t>(blocks - from));
  std::fill(is_chosen.begin(), is_chosen.begin() + some, true);
  std::vector<std::vector<int>> all;
  do {
    std::vector<int> chosen;
    for (int block = from; block < blocks; ++block) {
      if (is_chosen[static_cast<size_t>(block - from)]) chosen.push_back(block);
    }
    all.push_back(std::move(chosen));
  } while (std::prev_permutation(is_chosen.begin(), is_chosen.end()));
  return all;
}

// Into how many blocks hashes are cut, and how many of them have to agree: a key of at most kMostKeyBits.
struct Division {
  int blocks;
  int some;
};

// The one that makes the least work. Of few hashes more may differ than have to, so that there are few keys.
Division cheapest(double hashes, int distance) {
  Division best{};
  double least = std::numeric_limits<double>::infinity();
  for (int differing = std::max(distance, 2); differing <= kMostDistance; ++differing) {
    double tables = 1;
    for (int some = 1; some * kHashBits <= kMostKeyBits * (differing + some); ++some) {
      tables = tables * (differing + some) / some;
      const double keys = std::exp2(static_cast<double>(some * kHashBits) / (differing + some));
      const double cost = tables * (hashes * kPutCost + hashes * hashes / keys + keys);
      if (cost < least) best = {differing + some, some};
      least = std::min(cost, least);
    }
  }
  return best;
}

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
  const auto [blocks, some] = cheapest(static_cast<double>(hashes.size()), distance);
  Table parts;  // of equal values of the first chosen block, which the caches of the processor hold
  for (int first = 0; first <= blocks - some; ++first) {
    const Key part_key({first}, blocks);
    parts.fill(hashes, {}, part_key);
    std::vector<Key> keys;
    for (const std::vector<int>& chosen : choices(first + 1, blocks, some - 1)) {
      keys.emplace_back(chosen, blocks);
      const uint64_t flipped = mirrored >> (first * kHashBits / blocks);
      const int bit = first * kHashBits / blocks + std::countr_zero(flipped);
      if (part_key.of(mirrored) != 0) keys.back().add(bit, bit + 1);  // tells a part from the mirrored one
    }
    std::atomic<uint32_t> next{0};
    share_work(threads, [&] {
      std::vector<std::pair<uint32_t, uint32_t>> pairs;
      const auto join = [&] {
        const std::lock_guard lock(mutex);
        for (const auto& [a, b] : pairs) sets.join(a, b);
        pairs.clear();
      };
      const auto found = [&](uint32_t a, uint32_t b, uint64_t bits) {
        if (steps(bits, strong[a], strong[b]) > kMostSteps) return;
        pairs.emplace_back(a, b);
        if (pairs.size() == kPairsAtOnce) join();
      };
      Items items;
      Table table;
      for (uint32_t part = next++; part < part_key.count(); part = next++) {
        const uint32_t other = part ^ part_key.of(mirrored);
        if (other < part) continue;  // found from there
        items.hashes.clear();
        items.indices.clear();
        parts.copy(part, items);
        if (other != part) parts.copy(other, items);
        for (const Key& key : keys) {
          table.fill(items.hashes, items.indices, key);
          for (uint32_t at = 0; at < key.count(); ++at) {
            table.find_near(at, 0, 0, distance, found);
            if (mirrored != 0) table.find_near(at, mirrored, key.of(mirrored), distance, found);
          }
        }
      }
      join();
    });
  }
  return std::move(sets).firsts();
}

}  // namespace stoker

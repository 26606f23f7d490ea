#include "core/audit/near_hashes.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/threads/share_work.h"

namespace stoker {
namespace {

constexpr int kBands = 4;
constexpr int kBandBits = 16;
constexpr uint32_t kKeys = uint32_t{1} << kBandBits;
constexpr uint32_t kKeysAtOnce = 64;
constexpr size_t kPairsAtOnce = 1024;

uint32_t band_of(uint64_t hash, int band) {
  return static_cast<uint32_t>(hash >> (band * kBandBits)) & (kKeys - 1);
}

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

// The hashes in the order of one band.
class Band {
 public:
  Band(std::span<const uint64_t> hashes, int band)
      : starts_(size_t{kKeys} + 1), hashes_(hashes.size()), indices_(hashes.size()) {
    for (const uint64_t hash : hashes) ++starts_[size_t{band_of(hash, band)} + 1];
    std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
    std::vector<uint32_t> next(starts_.begin(), starts_.end() - 1);
    for (size_t i = 0; i < hashes.size(); ++i) {
      const uint32_t at = next[band_of(hashes[i], band)]++;
      hashes_[at] = hashes[i];
      indices_[at] = static_cast<uint32_t>(i);
    }
  }

  uint32_t start(uint32_t key) const { return starts_[key]; }
  uint32_t end(uint32_t key) const { return starts_[size_t{key} + 1]; }
  uint64_t hash(uint32_t at) const { return hashes_[at]; }
  uint32_t index(uint32_t at) const { return indices_[at]; }

 private:
  std::vector<uint32_t> starts_;
  std::vector<uint64_t> hashes_;
  std::vector<uint32_t> indices_;
};

// All numbers of `kBandBits` bits of which at most `most` are set.
std::vector<uint32_t> differences(int most) {
  std::vector<uint32_t> numbers;
  for (uint32_t number = 0; number < kKeys; ++number) {
    if (std::popcount(number) <= most) numbers.push_back(number);
  }
  return numbers;
}

struct Search {
  const Band& band;
  int distance;
  uint64_t flipped;                      // of one hash of each pair
  const std::vector<uint32_t>& between;  // what the keys of a pair may differ in
};

// Calls `found` with the indices of each pair of which one has this key, and the other no smaller one.
template <typename Found>
void find_near(const Search& search, uint32_t key, const Found& found) {
  const Band& band = search.band;
  if (band.start(key) == band.end(key)) return;
  for (const uint32_t difference : search.between) {
    const uint32_t other = key ^ difference;
    if (other < key) continue;
    for (uint32_t i = band.start(key); i < band.end(key); ++i) {
      const uint64_t wanted = band.hash(i) ^ search.flipped;
      for (uint32_t j = other == key ? i + 1 : band.start(other); j < band.end(other); ++j) {
        if (std::popcount(wanted ^ band.hash(j)) <= search.distance) found(band.index(i), band.index(j));
      }
    }
  }
}

}  // namespace

std::vector<uint32_t> near_hashes(std::span<const uint64_t> hashes, int distance, uint64_t mirrored,
                                  size_t threads) {
  if (distance < 0 || distance > kMostDistance) {
    throw Error(ErrorCode::kBadArgument, "A distance of " + std::to_string(distance) +
                                             " bits; it must be 0.." + std::to_string(kMostDistance));
  }
  if (hashes.size() >= std::numeric_limits<uint32_t>::max()) {
    throw Error(ErrorCode::kBadArgument, std::to_string(hashes.size()) + " hashes are too many");
  }
  Sets sets(hashes.size());
  std::mutex mutex;
  const std::vector<uint32_t> apart = differences(distance / kBands);
  for (int number = 0; number < kBands; ++number) {
    const Band band(hashes, number);
    for (const uint64_t flipped : {uint64_t{0}, mirrored}) {
      std::vector<uint32_t> between = apart;
      for (uint32_t& difference : between) difference ^= band_of(flipped, number);
      const Search search{band, distance, flipped, between};
      std::atomic<uint32_t> next{0};
      share_work(threads, [&] {
        std::vector<std::pair<uint32_t, uint32_t>> pairs;
        const auto join = [&] {
          const std::lock_guard lock(mutex);
          for (const auto& [a, b] : pairs) sets.join(a, b);
          pairs.clear();
        };
        for (uint32_t first = next.fetch_add(kKeysAtOnce); first < kKeys;
             first = next.fetch_add(kKeysAtOnce)) {
          for (uint32_t key = first; key < first + kKeysAtOnce; ++key) {
            find_near(search, key, [&](uint32_t a, uint32_t b) {
              pairs.emplace_back(a, b);
              if (pairs.size() == kPairsAtOnce) join();
            });
          }
        }
        join();
      });
      if (mirrored == 0) break;
    }
  }
  return std::move(sets).firsts();
}

}  // namespace stoker

// Which of several weighted groups come at the positions of an epoch, in integers alone.
#pragma once

#include <cstdint>
#include <span>

namespace stoker {

// 0..bound-1 from the high bits of x, without a division.
inline uint64_t reduce(uint64_t x, uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{x} * bound) >> 64);
}

// Groups by the running sums of their weights, which it borrows: see docs/explanation/determinism.md.
class WeightedGroups {
 public:
  // `ends` must ascend, without falling, and its last be at least 1. Throws kBadArgument otherwise.
  explicit WeightedGroups(std::span<const uint64_t> ends);

  struct Draw {
    uint64_t group;
    uint64_t word;  // for a choice within the group
  };
  // An independent draw for a position: each group as often as its weight says.
  Draw draw(uint64_t position, uint64_t seed) const;

  // The group at one of `slots` points that are evenly spaced over the weights: each group has as many points
  // as its share says, rounded down or up. `offset` places the first point, as a fraction offset / total() of
  // the distance between two points. slot < slots, offset < total().
  uint64_t at(uint64_t slot, uint64_t slots, uint64_t offset) const;

  uint64_t total() const { return ends_.back(); }

 private:
  uint64_t group_at(uint64_t point) const;

  std::span<const uint64_t> ends_;
};

}  // namespace stoker

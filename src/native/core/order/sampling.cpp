#include "core/order/sampling.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/order/philox.h"

namespace stoker {

WeightedGroups::WeightedGroups(std::span<const uint64_t> ends) : ends_(ends) {
  if (ends.empty() || ends.back() == 0 || !std::ranges::is_sorted(ends)) {
    throw Error(ErrorCode::kBadArgument, "The running sums of weights must ascend to a total of at least 1");
  }
}

WeightedGroups::Draw WeightedGroups::draw(uint64_t position, uint64_t seed) const {
  const auto words = philox(
      {static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), 1, 0x73616D70 /* "samp" */},
      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return {group_at(reduce(uint64_t{words[0]} << 32 | words[1], total())),
          uint64_t{words[2]} << 32 | words[3]};
}

uint64_t WeightedGroups::at(uint64_t slot, uint64_t slots, uint64_t offset) const {
  __extension__ using Wide = unsigned __int128;
  return group_at(static_cast<uint64_t>((Wide{slot} * total() + offset) / slots));
}

uint64_t WeightedGroups::group_at(uint64_t point) const {
  return static_cast<uint64_t>(std::ranges::upper_bound(ends_, point) - ends_.begin());
}

}  // namespace stoker

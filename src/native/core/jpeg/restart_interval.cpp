#include "core/jpeg/restart_interval.h"

#include <string>

#include "core/base/errors.h"

namespace stoker {
namespace {

constexpr uint32_t kMostMcus = 65535;  // what a DRI segment can hold
constexpr uint32_t kBlockColumns = 8;

}  // namespace

uint32_t restart_interval(uint32_t mcus_per_row, uint32_t tiles) {
  if (mcus_per_row < 1 || tiles < 1 || mcus_per_row > kMostMcus || tiles > kMostMcus) {
    throw Error(ErrorCode::kBadArgument, "A restart interval for " + std::to_string(tiles) + " tiles in " +
                                             std::to_string(mcus_per_row) + " MCUs; both must be 1.." +
                                             std::to_string(kMostMcus));
  }
  for (uint32_t count = tiles; 4 * count >= 3 * tiles; --count) {
    if (mcus_per_row % count == 0) return mcus_per_row / count;
  }
  return (mcus_per_row + tiles - 1) / tiles;
}

uint32_t mcus_per_row(uint32_t width, int horizontal_sampling) {
  const auto columns = static_cast<uint32_t>(horizontal_sampling) * kBlockColumns;
  return (width + columns - 1) / columns;
}

}  // namespace stoker

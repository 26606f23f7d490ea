#include "core/jpeg/least_data.h"

#include <string>

#include "core/base/errors.h"

namespace stoker {
namespace {

constexpr uint64_t kBlockSide = 8;

uint64_t divided_up(uint64_t value, uint64_t by) {
  return (value + by - 1) / by;
}

// Blocks along one side of a component.
uint64_t blocks_along(int32_t side, int factor, int most) {
  return divided_up(static_cast<uint64_t>(side) * static_cast<uint64_t>(factor),
                    static_cast<uint64_t>(most) * kBlockSide);
}

uint64_t least_bits(ScanCoding coding, uint64_t blocks) {
  switch (coding) {
    case ScanCoding::kSequential:
      return 2 * blocks;
    case ScanCoding::kProgressive:
      return blocks;
    case ScanCoding::kArithmetic:
      return 0;
  }
  return 0;
}

}  // namespace

uint64_t blocks_of(Extent image, int across, int down, int most_across, int most_down) {
  return blocks_along(image.width, across, most_across) * blocks_along(image.height, down, most_down);
}

void refuse_missing_data(ScanCoding coding, Extent image, uint64_t blocks, size_t bytes) {
  const uint64_t least = divided_up(least_bits(coding, blocks), 8);
  if (bytes >= least) return;
  throw Error(ErrorCode::kBadImage, "The JPEG is cut short: its header claims " +
                                        std::to_string(image.width) + " x " + std::to_string(image.height) +
                                        " pixels, which take at least " + std::to_string(least) +
                                        " bytes of data, and " + std::to_string(bytes) + " follow");
}

}  // namespace stoker

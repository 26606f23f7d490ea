#include "core/sources/sample_source.h"

#include "core/shards/crc32c.h"

namespace stoker {

bool FetchedSample::copy(std::span<const uint8_t> part, uint8_t* out) const {
  const auto before = static_cast<size_t>(part.data() - bytes.data());
  // Also without a check: it is the fastest copy to memory that is not in the caches.
  const uint32_t sum = crc32c_copy(crc32c(bytes.first(before)), part, out);
  return !crc || crc32c_extend(sum, bytes.subspan(before + part.size())) == *crc;
}

}  // namespace stoker

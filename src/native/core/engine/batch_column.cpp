#include "core/engine/batch_column.h"

#include <algorithm>

namespace stoker {

void BatchColumn::set(size_t sample, size_t thread, std::span<const uint8_t> values) {
  std::vector<uint8_t>& bytes = pieces_[thread].bytes;
  const size_t begin = bytes.size();
  bytes.insert(bytes.end(), values.begin(), values.end());
  slices_[sample] = {thread, begin, values.size()};
}

std::span<const uint8_t> BatchColumn::of(size_t sample) const {
  const Slice& slice = slices_[sample];
  return std::span(pieces_[slice.thread].bytes).subspan(slice.begin, slice.size);
}

GatheredColumn gather(const BatchColumn& column, size_t value_bytes) {
  GatheredColumn gathered;
  size_t bytes = 0;
  gathered.offsets.reserve(column.samples() + 1);
  gathered.offsets.push_back(0);
  for (size_t i = 0; i < column.samples(); ++i) {
    bytes += column.of(i).size();
    gathered.offsets.push_back(static_cast<int64_t>(bytes / value_bytes));
  }
  gathered.values = std::make_unique_for_overwrite<uint8_t[]>(bytes);
  uint8_t* to = gathered.values.get();
  for (size_t i = 0; i < column.samples(); ++i) to = std::ranges::copy(column.of(i), to).out;
  return gathered;
}

}  // namespace stoker

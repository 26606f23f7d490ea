// One field of a batch, as the threads collect it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace stoker {

// The values of each sample as they lie in memory. Each thread appends to memory of its own, so that a sample
// costs no allocation and no lock.
class BatchColumn {
 public:
  // At first every sample has no values.
  BatchColumn(size_t samples, size_t threads) : slices_(samples), pieces_(threads) {}

  // Only one thread calls this for a sample, and with `thread`, at a time. A second call replaces the first.
  void set(size_t sample, size_t thread, std::span<const uint8_t> values);

  size_t samples() const { return slices_.size(); }
  // Valid until the next set().
  std::span<const uint8_t> of(size_t sample) const;

 private:
  struct Slice {
    size_t thread = 0;
    size_t begin = 0;
    size_t size = 0;
  };
  struct alignas(64) Piece {  // a cache line, which threads would take from each other
    std::vector<uint8_t> bytes;
  };

  std::vector<Slice> slices_;
  std::vector<Piece> pieces_;
};

// A column of a batch: the values of sample i begin at offsets[i], counted in values of the column.
struct GatheredColumn {
  std::unique_ptr<uint8_t[]> values;  // as they lie in memory
  std::vector<int64_t> offsets;       // one more than samples
};

// The values of all samples end to end.
GatheredColumn gather(const BatchColumn& column, size_t value_bytes);

}  // namespace stoker

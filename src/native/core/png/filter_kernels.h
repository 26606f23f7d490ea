// Undoing the row filters of PNG (PNG specification, section 9).
//
// A pixel waits for the one on its left, which makes a row a chain. Several rows are walked at once, each two
// pixels behind the row above it, one lane of a vector for each row: a step decodes a pixel of every row.
// Neighbours that a row's filter does not use are masked to zero, and then Paeth's predictor serves all
// filters but one: with only the left pixel it gives that pixel, with only the pixel above it gives that one,
// and without any it gives zero. Only averages are computed separately.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stoker {

// As PNG counts them: none, sub, up, average, Paeth.
inline constexpr uint8_t kLastFilter = 4;

// How many rows are walked at once. `pixel_bytes` is 1, 2, 3, 4, 6 or 8.
constexpr size_t filter_rows(size_t pixel_bytes) {
  return pixel_bytes <= 2 ? 16 / pixel_bytes : pixel_bytes <= 4 ? 4 : 2;
}

// Bytes that rows need around them, before the first, between two, and after the last: kernels may read them,
// and overwrite them when they write rows.
inline constexpr size_t kFilterPadding = 64;

// Rows that begin `stride` bytes after each other.
struct FilteredRows {
  const uint8_t* data;  // the first row's filter, and then its bytes
  size_t stride;
  size_t count;  // 1 .. filter_rows()
};

// All sets give the same bytes.
struct FilterKernels {
  const char* name;
  // `pixels` pixels of each row, at `out` and every `stride` bytes from there. `above` is the row above the
  // first. No filter is above kLastFilter.
  void (*undo)(size_t pixel_bytes, const FilteredRows& rows, const uint8_t* above, size_t pixels,
               uint8_t* out, size_t stride);
};

// Those this processor can run, the fastest first; tests run one body over all of them.
const std::vector<const FilterKernels*>& filter_kernels();

}  // namespace stoker

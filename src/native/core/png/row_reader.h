// The rows of a PNG that is not interlaced: its data chunks inflated by zlib, the filters undone by kernels
// of our own.
//
// It reads only files that follow the specification exactly. It reports all others, which libpng then reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/base/pixels.h"
#include "core/base/scratch_bytes.h"
#include "core/png/filter_kernels.h"

namespace stoker {

// Rows as the file has them, without filters. They live until the next are asked for.
struct PngRows {
  const uint8_t* data;
  size_t stride;
  int32_t count;
};

// Reads one image after another, with scratch memory that is kept. Not for two threads at once.
class PngRowReader {
 public:
  explicit PngRowReader(const FilterKernels& kernels = *filter_kernels().front());
  ~PngRowReader();
  PngRowReader(const PngRowReader&) = delete;
  PngRowReader& operator=(const PngRowReader&) = delete;

  // `chunks` are those from the first data chunk on, and must live until the last row was read.
  void open(std::span<const uint8_t> chunks, Extent size, unsigned pixel_bits);

  // Begins to read the rows `first` to below `end`, of each the leftmost `columns` pixels, once per open().
  void start(int32_t first, int32_t end, int32_t columns);

  // How many rows next() gives, but for the last ones: a power of two.
  int32_t rows_together() const { return together_; }

  // The next rows; nothing if there is a doubt about the data, also about those after the last row of the
  // image. Otherwise nothing after `end` is read.
  std::optional<PngRows> next();

  // Instead of start(): whether next() would give all rows of the image.
  bool check();

 private:
  struct Inflater;

  int32_t rows_from(int32_t row) const;
  bool inflate_rows();
  bool inflate(uint8_t* to, size_t size);
  bool ends_here();
  bool next_chunk();

  const FilterKernels& kernels_;
  std::unique_ptr<Inflater> inflater_;
  std::span<const uint8_t> left_;  // behind the data of the chunk that is being inflated
  Extent size_;
  unsigned pixel_bits_ = 8;
  size_t pixel_bytes_ = 1;  // how far the filters look to the left
  size_t line_bytes_ = 0;   // a row and its filter
  int32_t together_ = 1;
  int32_t first_ = 0, end_ = 0;
  size_t columns_ = 0;      // of pixel_bytes_
  int32_t read_ = 0;        // rows that were inflated,
  int32_t done_ = 0;        // of which the filters were undone,
  int32_t given_ = 0;       // and as many of these at last
  int32_t lines_from_ = 0;  // the first row in lines_,
  int32_t room_ = 0;        // and how many it has room for
  size_t stride_ = 0;
  ScratchBytes lines_;  // inflated, from kFilterPadding on
  ScratchBytes rows_;   // the row above the next, and those that are given
};

}  // namespace stoker

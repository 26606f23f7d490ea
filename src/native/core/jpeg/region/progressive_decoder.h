// Regions of progressive JPEGs, decoded without libjpeg to the pixels that libjpeg gives.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/base/pixels.h"
#include "core/jpeg/region/frame_header.h"
#include "core/jpeg/region/region_pixels.h"

namespace stoker {

// Reads all scans side by side, to their end: a few rows of MCUs of each of them, and then the next rows. Of
// these it keeps the coefficients of the region, and of all other blocks which ones are not zero. One per
// thread; it keeps its scratch memory.
class ProgressiveDecoder {
 public:
  explicit ProgressiveDecoder(const PlaneKernels& planes = *plane_kernels().front(),
                              const EntropyKernels& entropy = *entropy_kernels().front())
      : kernels_(entropy), pixels_(planes) {}

  // Takes the headers. False for an image that is libjpeg's to decode. Their bytes must live until the last
  // rows are read.
  bool open(const FrameReader& headers);

  // Begins to decode a region that lies in the image at 1/`shrink` of its size, as BaselineDecoder::start.
  // False where the image is left to libjpeg: also where not every bit of every coefficient comes
  // (docs/decisions/incomplete-progressive.md).
  bool start(Rect region, int32_t shrink);

  // Writes the RGBX rows that are complete with the next row of MCUs, as RegionPixels::write_rows, and
  // returns their number, which may be 0; nothing where the data are left to libjpeg, because it would warn.
  // Until all rows of the region were written; the last ones only after all data were read.
  std::optional<int32_t> next(uint8_t* out, size_t stride);
  int32_t most_rows() const { return pixels_.most_rows(); }

  // Instead of start(): reads all scans and keeps no coefficients. False where start() or next() leaves the
  // image to libjpeg.
  bool check();

 private:
  // Units of a scan are MCUs, or the blocks of its one component.
  struct Grid {
    uint64_t columns = 0, rows = 0;
    uint64_t across = 1, down = 1;  // units in an MCU
  };
  struct Component {
    Grid blocks;
    uint64_t* known = nullptr;               // for each block of the band: BandScan
    int16_t* values = nullptr;               // of the blocks of the region's MCUs in it, in rows
    size_t kept_columns = 0;                 // of them
    std::array<int8_t, kBlockValues> low{};  // the lowest bit that comes, by position; -1: none
  };
  struct Scan {
    ScanHeader header;
    const uint8_t* end = nullptr;  // the marker behind its data
    Grid grid;
    uint64_t interval = 0;  // units of a segment
    uint64_t segment = 0;   // which is read
    uint64_t at = 0;        // the unit that comes next
    BandScan entropy;

    uint64_t units() const { return grid.columns * grid.rows; }
    uint64_t segment_end() const { return std::min((segment + 1) * interval, units()); }
  };

  bool read_headers();
  bool advance(const ScanHeader& header);
  bool find_tables(Scan& scan);
  Grid grid_of(const ScanHeader& header) const;
  void lay_out(const McuRect& kept);
  bool read_band();
  bool read_to_end();
  bool read_rows(Scan& scan);
  bool end_segment(Scan& scan);
  bool read_run(Scan& scan, uint64_t count, bool keep);
  bool read_dc(Scan& scan, uint64_t count, bool keep);

  const EntropyKernels& kernels_;
  FrameReader headers_;
  RegionPixels pixels_;
  HuffmanCache tables_;
  std::array<Component, kMostComponents> components_;
  std::deque<Scan> scans_;  // some more than the image has
  size_t scan_count_ = 0;
  McuRect kept_;
  // The band: rows of MCUs that are read of all scans before any that come behind them.
  int32_t band_rows_ = 1;  // at most
  int32_t band_first_ = 0, band_end_ = 0;
  bool keeps_ = false;  // of the band
  std::vector<uint64_t> known_;
  std::vector<int16_t> values_;
  std::vector<uint8_t> last_;  // of a component in a row of MCUs
  int32_t row_ = 0;            // of MCUs, that comes next
};

}  // namespace stoker

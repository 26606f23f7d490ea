// Regions of baseline JPEGs, decoded without libjpeg to the pixels that libjpeg gives.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/pixels.h"
#include "core/jpeg/region/frame_header.h"
#include "core/jpeg/region/mcu_cursor.h"
#include "core/jpeg/region/region_pixels.h"

namespace stoker {

// Only the MCUs that a region touches go beyond entropy decoding; with restart markers, and from the first
// marker before the region on, only they are entropy-decoded. One per thread; it keeps its scratch memory.
class BaselineDecoder {
 public:
  explicit BaselineDecoder(const PlaneKernels& planes = *plane_kernels().front(),
                           const EntropyKernels& entropy = *entropy_kernels().front())
      : pixels_(planes), cursor_(entropy) {}

  // Takes the headers. False for an image that is libjpeg's to decode. Their bytes must live until the last
  // rows are read.
  bool open(const FrameReader& headers);

  // Throws kBadImage where fewer bytes follow the headers than such an image can have, or no end-of-image
  // marker.
  void refuse_missing_data() const;

  // Begins to decode a region that lies in the image at 1/`shrink` of its size (1, 2, 4 or 8; sides are
  // rounded up). Only shrink = 1 gives libjpeg's pixels. False where the data are left to libjpeg. Throws as
  // McuCursor::open. Of `entries` a copy is kept.
  bool start(Rect region, int32_t shrink, EntryPoints entries = {});

  // Whether it began at an entry point; then what next() leaves to libjpeg may be read by another start()
  // without any.
  bool entered() const { return cursor_.entered(); }

  // Writes the RGBX rows that are complete with the next row of MCUs, as RegionPixels::write_rows, and
  // returns their number, which may be 0; nothing where the data are left to libjpeg. Until all rows of the
  // region were written.
  std::optional<int32_t> next(uint8_t* out, size_t stride);
  int32_t most_rows() const { return pixels_.most_rows(); }

  // Instead of start(): reads the entropy-coded data of the whole image and makes no pixels. False or an
  // error where decoding the whole gives one.
  bool check();

 private:
  // The coefficients of a component in one row of MCUs.
  struct Coefficients {
    std::vector<int16_t> values;
    std::vector<uint8_t> last;
  };

  size_t scan_at() const;  // in bytes of the file
  void check_tail() const;
  void lay_out();

  std::span<const uint8_t> bytes_;
  FrameHeader frame_;
  std::span<const uint8_t> data_;
  RegionPixels pixels_;
  McuCursor cursor_;
  std::array<Coefficients, kMostComponents> coefficients_;
  std::vector<McuBlock> blocks_;
  bool low_ = false;  // not all values are wanted
  int32_t row_ = 0;   // of MCUs, that comes next
};

}  // namespace stoker

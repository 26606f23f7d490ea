// Regions of baseline JPEGs, decoded without libjpeg to the pixels that libjpeg gives.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/pixels.h"
#include "core/jpeg/baseline/baseline_header.h"
#include "core/jpeg/baseline/mcu_cursor.h"
#include "core/jpeg/baseline/plane_kernels.h"

namespace stoker {

// Only the MCUs that a region touches go beyond entropy decoding; with restart markers, and from the first
// marker before the region on, only they are entropy-decoded. One per thread; it keeps its scratch memory.
class BaselineDecoder {
 public:
  explicit BaselineDecoder(const PlaneKernels& planes = *plane_kernels().front(),
                           const EntropyKernels& entropy = *entropy_kernels().front())
      : kernels_(planes), cursor_(entropy) {}

  // Reads the headers. False for an image that is libjpeg's to decode. `bytes` must live until decode()
  // returns.
  bool open(std::span<const uint8_t> bytes);
  Extent size() const { return frame_.size; }

  // Throws kBadImage where fewer bytes follow the headers than such an image can have, or no end-of-image
  // marker.
  void refuse_missing_data() const;

  // Writes RGBX rows of a region that lies in the image at 1/`shrink` of its size (1, 2, 4 or 8; sides are
  // rounded up), the upper before the lower; up to kRgbxBytes * kPlanePadding bytes behind each row are
  // overwritten. Only shrink = 1 gives libjpeg's pixels. False where the data are left to libjpeg. Throws as
  // McuCursor::open.
  bool decode(Rect region, int32_t shrink, uint8_t* out, size_t stride);

  // Instead of decode(): reads the entropy-coded data of the whole image and makes no pixels. False or an
  // error where decode() of the whole gives one.
  bool check();

 private:
  // A component of one row of MCUs: its coefficients, and its pixels, below one row of those above.
  struct Plane {
    int32_t across = 1, down = 1;  // blocks of an MCU
    int32_t side = 8;              // pixels of a block
    size_t columns = 0;            // blocks of the region's MCUs
    std::vector<int16_t> values;
    std::vector<uint8_t> last;
    std::vector<uint8_t> pixels;
    size_t stride = 0;

    // Row -1 is the last one of the MCUs above.
    uint8_t* row(int32_t y) { return pixels.data() + static_cast<size_t>(y + 1) * stride + kPlanePadding; }
  };

  size_t scan_at() const;  // in bytes of the file
  void check_tail() const;
  void shrink_to(int32_t shrink);
  void lay_out(Rect region);
  bool decode_row(int32_t mcu_row);
  void transform(Plane& plane, const QuantTable& quant);
  void close_edges(Plane& plane);
  void write_rows(int32_t mcu_row, Rect region, uint8_t* out, size_t stride);
  void write_row(int32_t y, int32_t mcu_row, Rect region, uint8_t* out);
  const uint8_t* upsampled(Plane& plane, int32_t y, int32_t mcu_row, Rect region, std::vector<uint8_t>& row);

  const PlaneKernels& kernels_;
  std::span<const uint8_t> bytes_;
  BaselineFrame frame_;
  McuCursor cursor_;
  std::array<Plane, kMostComponents> planes_;
  std::vector<McuBlock> blocks_;
  bool dc_only_ = false;
  Extent shrunken_;                              // size of the image
  int32_t mcu_width_ = 8, mcu_height_ = 8;       // in its pixels
  int32_t chroma_across_ = 1, chroma_down_ = 1;  // its pixels for one of chroma
  int32_t first_column_ = 0, last_column_ = 0;   // of MCUs that the region touches
  int32_t first_row_ = 0, last_row_ = 0;
  std::vector<uint8_t> chroma_[2];  // one row each, upsampled
};

}  // namespace stoker

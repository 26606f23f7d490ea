// From the coefficients of the MCUs that a region touches to its pixels, one row of MCUs after another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/pixels.h"
#include "core/jpeg/region/frame_header.h"
#include "core/jpeg/region/plane_kernels.h"

namespace stoker {

// The chroma of images that are narrower is upsampled by another rule of libjpeg.
bool has_usual_chroma(const FrameHeader& frame);

// MCUs, by columns and rows; first and last belong to it.
struct McuRect {
  int32_t first_column = 0, last_column = -1;
  int32_t first_row = 0, last_row = -1;

  int32_t columns() const { return last_column - first_column + 1; }
  int32_t rows() const { return last_row - first_row + 1; }
};

// One per thread; it keeps its scratch memory.
class RegionPixels {
 public:
  explicit RegionPixels(const PlaneKernels& kernels) : kernels_(kernels) {}

  // `region` lies in the image at 1/`shrink` of its size (1, 2, 4 or 8; sides are rounded up).
  void lay_out(const FrameHeader& frame, Rect region, int32_t shrink);

  const McuRect& mcus() const { return mcus_; }
  // How many values of each line of a block, in rows, count. The others may be anything.
  int32_t side_of(size_t component) const { return planes_[component].side; }
  // Blocks of a component in a row of mcus(), and rows of them in a row of MCUs.
  size_t blocks_across(size_t component) const { return planes_[component].columns; }
  size_t blocks_down(size_t component) const { return static_cast<size_t>(planes_[component].down); }

  // Takes the blocks of a component in the next row of MCUs, row by row, which are zero then. `last` is, of
  // each block, 0 where it has a DC value alone.
  void transform(size_t component, int16_t* values, const uint8_t* last);

  // After transform() of all components of a row of MCUs, which come from the upper to the lower: writes the
  // rows of RGBX that are complete with it, and returns their number. Up to kRgbxBytes * kPlanePadding bytes
  // behind each row are overwritten.
  int32_t write_rows(int32_t mcu_row, uint8_t* out, size_t stride);
  // No more than that.
  int32_t most_rows() const { return mcu_height_ + 1; }

 private:
  // The pixels of a component of one row of MCUs, below one row of those above.
  struct Plane {
    int32_t across = 1, down = 1;  // blocks of an MCU
    int32_t side = 8;              // pixels of a block
    size_t columns = 0;            // blocks of the region's MCUs
    std::vector<uint8_t> pixels;
    size_t stride = 0;

    // Row -1 is the last one of the MCUs above.
    uint8_t* row(int32_t y) { return pixels.data() + static_cast<size_t>(y + 1) * stride + kPlanePadding; }
  };

  void shrink_to(const FrameHeader& frame, int32_t shrink);
  void close_edges(Plane& plane);
  void write_row(int32_t y, int32_t mcu_row, uint8_t* out);
  const uint8_t* upsampled(Plane& plane, int32_t y, int32_t mcu_row, std::vector<uint8_t>& row);

  const PlaneKernels& kernels_;
  std::array<Plane, kMostComponents> planes_;
  std::array<QuantTable, kMostComponents> quant_;
  size_t components_ = 0;
  Rect region_;
  McuRect mcus_;
  Extent shrunken_;                              // size of the image
  int32_t mcu_width_ = 8, mcu_height_ = 8;       // in its pixels
  int32_t chroma_across_ = 1, chroma_down_ = 1;  // its pixels for one of chroma
  std::vector<uint8_t> chroma_[2];               // one row each, upsampled
};

}  // namespace stoker

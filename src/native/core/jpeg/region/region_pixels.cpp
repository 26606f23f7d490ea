#include "core/jpeg/region/region_pixels.h"

#include <algorithm>
#include <cstring>

namespace stoker {
namespace {

constexpr int32_t kBlockSide = 8;
// Upsampling looks one chroma pixel over the edge.
constexpr int32_t kMargin = 2;
constexpr int32_t kLeastChromaWidth = 3;

void at_least(std::vector<uint8_t>& values, size_t size) {
  if (values.size() < size) values.resize(size);
}

}  // namespace

bool has_usual_chroma(const FrameHeader& frame) {
  return frame.across == 1 || (frame.size.width + 1) / 2 >= kLeastChromaWidth;
}

// Chroma at half width and height is not shrunk as soon as luma is: it has the right size already.
void RegionPixels::shrink_to(const FrameHeader& frame, int32_t shrink) {
  const int32_t side = kBlockSide / shrink;
  const bool quartered = frame.across == 2 && frame.down == 2 && side > 1;
  const int32_t chroma_side = quartered ? std::min(2 * side, kBlockSide) : side;
  for (size_t i = 0; i < components_; ++i) planes_[i].side = i == 0 ? side : chroma_side;
  shrunken_ = {(frame.size.width + shrink - 1) / shrink, (frame.size.height + shrink - 1) / shrink};
  mcu_width_ = side * frame.across;
  mcu_height_ = side * frame.down;
  chroma_across_ = mcu_width_ / chroma_side;
  chroma_down_ = mcu_height_ / chroma_side;
}

void RegionPixels::lay_out(const FrameHeader& frame, Rect region, int32_t shrink) {
  components_ = frame.components;
  region_ = region;
  shrink_to(frame, shrink);
  const int32_t across = chroma_across_ > 1 ? kMargin : 0, down = chroma_down_ > 1 ? kMargin : 0;
  mcus_.first_column = std::max(region.x - across, 0) / mcu_width_;
  mcus_.last_column = (std::min(region.x + region.width + across, shrunken_.width) - 1) / mcu_width_;
  mcus_.first_row = std::max(region.y - down, 0) / mcu_height_;
  mcus_.last_row = (std::min(region.y + region.height + down, shrunken_.height) - 1) / mcu_height_;
  const auto columns = static_cast<size_t>(mcus_.columns());
  for (size_t i = 0; i < components_; ++i) {
    Plane& plane = planes_[i];
    plane.across = frame.across_of(i);
    plane.down = frame.down_of(i);
    plane.columns = columns * static_cast<size_t>(plane.across);
    quant_[i] = frame.quant[frame.component[i].quant];
    const auto side = static_cast<size_t>(plane.side);
    plane.stride = plane.columns * side + 2 * kPlanePadding;
    at_least(plane.pixels, (static_cast<size_t>(plane.down) * side + 1) * plane.stride + kPlanePadding);
  }
  for (auto& row : chroma_) at_least(row, columns * static_cast<size_t>(mcu_width_) + 2 * kPlanePadding);
}

void RegionPixels::transform(size_t component, int16_t* values, const uint8_t* last) {
  Plane& plane = planes_[component];
  const uint16_t* quant = quant_[component].data();
  for (int32_t y = 0; y < plane.down; ++y, values += plane.columns * kBlockValues, last += plane.columns) {
    uint8_t* const out = plane.row(y * plane.side);
    if (plane.side < kBlockSide) {
      kernels_.small_inverse_dct(values, plane.columns, quant, static_cast<size_t>(plane.side), out,
                                 plane.stride);
    } else {
      kernels_.inverse_dct(values, plane.columns, last, quant, out, plane.stride);
    }
  }
}

int32_t RegionPixels::write_rows(int32_t mcu_row, uint8_t* out, size_t stride) {
  // With chroma at half height the last row waits for the chroma below it, unless there is none.
  const int32_t late = chroma_down_ > 1 ? 1 : 0;
  int32_t begin = mcu_row * mcu_height_, end = begin + mcu_height_;
  if (mcu_row > mcus_.first_row) begin -= late;
  if (mcu_row < mcus_.last_row) end -= late;
  begin = std::max(begin, region_.y);
  end = std::min(end, region_.y + region_.height);
  for (size_t i = 1; i < components_ && chroma_across_ > 1; ++i) close_edges(planes_[i]);
  for (int32_t y = begin; y < end; ++y, out += stride) write_row(y, mcu_row, out);
  for (size_t i = 0; i < components_ && late != 0; ++i) {
    Plane& plane = planes_[i];
    std::memcpy(plane.row(-1) - kPlanePadding, plane.row(plane.side * plane.down - 1) - kPlanePadding,
                plane.stride);
  }
  return std::max(end - begin, 0);
}

// The pixels beside the first and the last column of the image are those columns once more.
void RegionPixels::close_edges(Plane& plane) {
  const int32_t last = (shrunken_.width + 1) / 2 - 1 - mcus_.first_column * plane.side;
  const bool ends = last < static_cast<int32_t>(plane.columns) * plane.side;
  for (int32_t y = 0; y < plane.side; ++y) {
    uint8_t* row = plane.row(y);
    row[-1] = row[0];
    if (ends) row[last + 1] = row[last];
  }
}

void RegionPixels::write_row(int32_t y, int32_t mcu_row, uint8_t* out) {
  const int32_t x = region_.x - mcus_.first_column * mcu_width_;
  const uint8_t* luma = planes_[0].row(y - mcu_row * mcu_height_) + x;
  const auto width = static_cast<size_t>(region_.width);
  if (components_ == 1) return kernels_.grey_to_rgbx(luma, width, out);
  const uint8_t* blue = upsampled(planes_[1], y, mcu_row, chroma_[0]);
  const uint8_t* red = upsampled(planes_[2], y, mcu_row, chroma_[1]);
  kernels_.to_rgbx(luma, blue, red, width, out);
}

// The chroma of row y, from the region's first column on; in `row` where it has to be computed.
const uint8_t* RegionPixels::upsampled(Plane& plane, int32_t y, int32_t mcu_row, std::vector<uint8_t>& row) {
  const int32_t x = region_.x / chroma_across_ - mcus_.first_column * plane.side;
  const int32_t odd = region_.x % chroma_across_;
  const auto n = static_cast<size_t>((region_.width + odd + chroma_across_ - 1) / chroma_across_);
  const int32_t here = y / chroma_down_;
  const uint8_t* near = plane.row(here - mcu_row * plane.side) + x;
  const uint8_t* far = near;
  if (chroma_down_ > 1) {
    const int32_t last = (shrunken_.height + 1) / 2 - 1;
    const int32_t beside = std::clamp(y % 2 == 0 ? here - 1 : here + 1, 0, last);
    far = plane.row(beside - mcu_row * plane.side) + x;
  }
  if (chroma_across_ == 1 && chroma_down_ == 1) return near;
  uint8_t* out = row.data();
  if (chroma_across_ == 1) {
    kernels_.between_rows(near, far, y % 2 == 0 ? 1 : 2, n, out);
  } else if (chroma_down_ == 1) {
    kernels_.double_columns(near, n, out);
  } else {
    kernels_.double_both(near, far, n, out);
  }
  return out + odd;
}

}  // namespace stoker

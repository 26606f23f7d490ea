#include "core/jpeg/baseline/baseline_decoder.h"

#include <algorithm>
#include <cstring>

#include "core/jpeg/header.h"
#include "core/jpeg/least_data.h"

namespace stoker {
namespace {

constexpr int32_t kBlockSide = 8;
// Upsampling looks one chroma pixel over the edge.
constexpr int32_t kMargin = 2;
// libjpeg upsamples narrower chroma by another rule.
constexpr int32_t kLeastChromaWidth = 3;

template <typename T>
void at_least(std::vector<T>& values, size_t size) {
  if (values.size() < size) values.resize(size);
}

}  // namespace

bool BaselineDecoder::open(std::span<const uint8_t> bytes) {
  if (!read_baseline_header(bytes, frame_)) return false;
  if (frame_.across == 2 && (frame_.size.width + 1) / 2 < kLeastChromaWidth) return false;
  blocks_.clear();
  for (size_t i = 0; i < frame_.components; ++i) {
    Plane& plane = planes_[i];
    plane.across = i == 0 ? frame_.across : 1;
    plane.down = i == 0 ? frame_.down : 1;
    blocks_.insert(blocks_.end(), static_cast<size_t>(plane.across * plane.down), {.component = i});
  }
  bytes_ = bytes;
  return true;
}

void BaselineDecoder::refuse_missing_data() const {
  uint64_t blocks = 0;
  for (size_t i = 0; i < frame_.components; ++i) {
    blocks += blocks_of(frame_.size, planes_[i].across, planes_[i].down, frame_.across, frame_.down);
  }
  stoker::refuse_missing_data(ScanCoding::kSequential, frame_.size, blocks, frame_.scan.size());
  // Nearly every whole file ends with its end-of-image marker; others may have something behind it.
  const auto end = bytes_.last(2);
  if (end[0] != 0xFF || end[1] != kEoi) check_to_end(bytes_, scan_at());
}

size_t BaselineDecoder::scan_at() const {
  return static_cast<size_t>(frame_.scan.data() - bytes_.data());
}

bool BaselineDecoder::check() {
  if (!cursor_.open(frame_, blocks_) || !cursor_.skip_all()) return false;
  check_tail();
  return true;
}

void BaselineDecoder::check_tail() const {
  if (cursor_.is_done()) check_to_end(bytes_, scan_at() + cursor_.marker_at());
}

// Chroma at half width and height is not shrunk as soon as luma is: it has the right size already.
void BaselineDecoder::shrink_to(int32_t shrink) {
  const int32_t side = kBlockSide / shrink;
  dc_only_ = side == 1;
  const bool quartered = frame_.across == 2 && frame_.down == 2 && !dc_only_;
  const int32_t chroma_side = quartered ? std::min(2 * side, kBlockSide) : side;
  for (size_t i = 0; i < frame_.components; ++i) planes_[i].side = i == 0 ? side : chroma_side;
  shrunken_ = {(frame_.size.width + shrink - 1) / shrink, (frame_.size.height + shrink - 1) / shrink};
  mcu_width_ = side * frame_.across;
  mcu_height_ = side * frame_.down;
  chroma_across_ = mcu_width_ / chroma_side;
  chroma_down_ = mcu_height_ / chroma_side;
}

void BaselineDecoder::lay_out(Rect region) {
  const int32_t across = chroma_across_ > 1 ? kMargin : 0, down = chroma_down_ > 1 ? kMargin : 0;
  first_column_ = std::max(region.x - across, 0) / mcu_width_;
  last_column_ = (std::min(region.x + region.width + across, shrunken_.width) - 1) / mcu_width_;
  first_row_ = std::max(region.y - down, 0) / mcu_height_;
  last_row_ = (std::min(region.y + region.height + down, shrunken_.height) - 1) / mcu_height_;
  const auto columns = static_cast<size_t>(last_column_ - first_column_ + 1);
  size_t block = 0;
  for (size_t i = 0; i < frame_.components; ++i) {
    Plane& plane = planes_[i];
    const auto h = static_cast<size_t>(plane.across), v = static_cast<size_t>(plane.down);
    plane.columns = columns * h;
    const auto side = static_cast<size_t>(plane.side);
    plane.stride = plane.columns * side + 2 * kPlanePadding;
    at_least(plane.values, plane.columns * v * kBlockValues);
    at_least(plane.last, plane.columns * v);
    at_least(plane.pixels, (v * side + 1) * plane.stride + kPlanePadding);
    for (size_t y = 0; y < v; ++y) {
      for (size_t x = 0; x < h; ++x, ++block) {
        const size_t first = y * plane.columns + x;
        blocks_[block].values = plane.values.data() + first * kBlockValues;
        blocks_[block].last = plane.last.data() + first;
        blocks_[block].step = h;
      }
    }
  }
  for (auto& row : chroma_) at_least(row, columns * static_cast<size_t>(mcu_width_) + 2 * kPlanePadding);
}

bool BaselineDecoder::decode(Rect region, int32_t shrink, uint8_t* out, size_t stride) {
  if (!cursor_.open(frame_, blocks_)) return false;
  shrink_to(shrink);
  lay_out(region);
  for (int32_t row = first_row_; row <= last_row_; ++row) {
    if (!decode_row(row)) {
      for (Plane& plane : planes_) std::fill(plane.values.begin(), plane.values.end(), int16_t{0});
      return false;
    }
    for (size_t i = 0; i < frame_.components; ++i) {
      transform(planes_[i], frame_.quant[frame_.component[i].quant]);
    }
    write_rows(row, region, out, stride);
  }
  check_tail();
  return true;
}

bool BaselineDecoder::decode_row(int32_t mcu_row) {
  const uint64_t row = static_cast<uint64_t>(mcu_row) * static_cast<uint64_t>(frame_.mcu_columns());
  return cursor_.decode(row + static_cast<uint64_t>(first_column_),
                        static_cast<size_t>(last_column_ - first_column_ + 1), blocks_, dc_only_);
}

void BaselineDecoder::transform(Plane& plane, const QuantTable& quant) {
  for (int32_t y = 0; y < plane.down; ++y) {
    const size_t first = static_cast<size_t>(y) * plane.columns;
    if (plane.side < kBlockSide) {
      kernels_.small_inverse_dct(plane.values.data() + first * kBlockValues, plane.columns, quant.data(),
                                 static_cast<size_t>(plane.side), plane.row(y * plane.side), plane.stride);
      continue;
    }
    kernels_.inverse_dct(plane.values.data() + first * kBlockValues, plane.columns, plane.last.data() + first,
                         quant.data(), plane.row(y * kBlockSide), plane.stride);
  }
}

void BaselineDecoder::write_rows(int32_t mcu_row, Rect region, uint8_t* out, size_t stride) {
  // With chroma at half height the last row waits for the chroma below it, unless there is none.
  const int32_t late = chroma_down_ > 1 ? 1 : 0;
  int32_t begin = mcu_row * mcu_height_, end = begin + mcu_height_;
  if (mcu_row > first_row_) begin -= late;
  if (mcu_row < last_row_) end -= late;
  begin = std::max(begin, region.y);
  end = std::min(end, region.y + region.height);
  for (size_t i = 1; i < frame_.components && chroma_across_ > 1; ++i) close_edges(planes_[i]);
  for (int32_t y = begin; y < end; ++y) {
    write_row(y, mcu_row, region, out + static_cast<size_t>(y - region.y) * stride);
  }
  if (late == 0) return;
  for (size_t i = 0; i < frame_.components; ++i) {
    Plane& plane = planes_[i];
    std::memcpy(plane.row(-1) - kPlanePadding, plane.row(plane.side * plane.down - 1) - kPlanePadding,
                plane.stride);
  }
}

// The pixels beside the first and the last column of the image are those columns once more.
void BaselineDecoder::close_edges(Plane& plane) {
  const int32_t last = (shrunken_.width + 1) / 2 - 1 - first_column_ * plane.side;
  const bool ends = last < static_cast<int32_t>(plane.columns) * plane.side;
  for (int32_t y = 0; y < plane.side; ++y) {
    uint8_t* row = plane.row(y);
    row[-1] = row[0];
    if (ends) row[last + 1] = row[last];
  }
}

void BaselineDecoder::write_row(int32_t y, int32_t mcu_row, Rect region, uint8_t* out) {
  const int32_t x = region.x - first_column_ * mcu_width_;
  const uint8_t* luma = planes_[0].row(y - mcu_row * mcu_height_) + x;
  const auto width = static_cast<size_t>(region.width);
  if (frame_.components == 1) return kernels_.grey_to_rgbx(luma, width, out);
  const uint8_t* blue = upsampled(planes_[1], y, mcu_row, region, chroma_[0]);
  const uint8_t* red = upsampled(planes_[2], y, mcu_row, region, chroma_[1]);
  kernels_.to_rgbx(luma, blue, red, width, out);
}

// The chroma of row y, from the region's first column on; in `row` where it has to be computed.
const uint8_t* BaselineDecoder::upsampled(Plane& plane, int32_t y, int32_t mcu_row, Rect region,
                                          std::vector<uint8_t>& row) {
  const int32_t x = region.x / chroma_across_ - first_column_ * plane.side;
  const int32_t odd = region.x % chroma_across_;
  const auto n = static_cast<size_t>((region.width + odd + chroma_across_ - 1) / chroma_across_);
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

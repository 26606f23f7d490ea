#include "core/jpeg/region/baseline_decoder.h"

#include <algorithm>
#include <iterator>

#include "core/jpeg/header.h"
#include "core/jpeg/least_data.h"

namespace stoker {
namespace {

template <typename T>
void at_least(std::vector<T>& values, size_t size) {
  if (values.size() < size) values.resize(size);
}

// In zigzag order, of the values of lowest frequency, `side` of them in each line.
uint8_t last_position(int32_t side) {
  const auto* at = std::find(std::begin(kZigzag), std::end(kZigzag), (side - 1) * 8 + side - 1);
  return static_cast<uint8_t>(at - std::begin(kZigzag));
}

}  // namespace

bool BaselineDecoder::open(const FrameReader& headers) {
  frame_ = headers.frame();
  // Whatever the band of coefficients is: a sequential scan has all of them.
  if (frame_.progressive || headers.scan().components != frame_.components) return false;
  if (!has_usual_chroma(frame_)) return false;
  blocks_.clear();
  for (size_t i = 0; i < frame_.components; ++i) {
    blocks_.insert(blocks_.end(), static_cast<size_t>(frame_.across_of(i) * frame_.down_of(i)),
                   {.component = i});
  }
  bytes_ = headers.bytes();
  data_ = headers.scan().data;
  return true;
}

void BaselineDecoder::refuse_missing_data() const {
  uint64_t blocks = 0;
  for (size_t i = 0; i < frame_.components; ++i) {
    blocks += blocks_of(frame_.size, frame_.across_of(i), frame_.down_of(i), frame_.across, frame_.down);
  }
  stoker::refuse_missing_data(ScanCoding::kSequential, frame_.size, blocks, data_.size());
  // Nearly every whole file ends with its end-of-image marker; others may have something behind it.
  const auto end = bytes_.last(2);
  if (end[0] != 0xFF || end[1] != kEoi) check_to_end(bytes_, scan_at());
}

size_t BaselineDecoder::scan_at() const {
  return static_cast<size_t>(data_.data() - bytes_.data());
}

bool BaselineDecoder::check() {
  if (!cursor_.open(frame_, data_, blocks_) || !cursor_.skip_all()) return false;
  check_tail();
  return true;
}

void BaselineDecoder::check_tail() const {
  if (cursor_.is_done()) check_to_end(bytes_, scan_at() + cursor_.marker_at());
}

void BaselineDecoder::lay_out() {
  size_t block = 0;
  for (size_t i = 0; i < frame_.components; ++i) {
    Coefficients& own = coefficients_[i];
    const size_t across = pixels_.blocks_across(i), down = pixels_.blocks_down(i);
    const auto step = static_cast<size_t>(frame_.across_of(i));
    at_least(own.values, across * down * kBlockValues);
    at_least(own.last, across * down);
    for (size_t y = 0; y < down; ++y) {
      for (size_t x = 0; x < step; ++x, ++block) {
        const size_t first = y * across + x;
        blocks_[block].values = own.values.data() + first * kBlockValues;
        blocks_[block].last = own.last.data() + first;
        blocks_[block].step = step;
        blocks_[block].end = last_position(pixels_.side_of(i));
      }
    }
  }
}

bool BaselineDecoder::start(Rect region, int32_t shrink, EntryPoints entries) {
  if (!cursor_.open(frame_, data_, blocks_, entries)) return false;
  pixels_.lay_out(frame_, region, shrink);
  lay_out();
  low_ = shrink > 1;
  row_ = pixels_.mcus().first_row;
  return true;
}

std::optional<int32_t> BaselineDecoder::next(uint8_t* out, size_t stride) {
  const McuRect& mcus = pixels_.mcus();
  const uint64_t row = static_cast<uint64_t>(row_) * static_cast<uint64_t>(frame_.mcu_columns());
  if (!cursor_.decode(row + static_cast<uint64_t>(mcus.first_column), static_cast<size_t>(mcus.columns()),
                      blocks_, low_)) {
    for (Coefficients& own : coefficients_) std::fill(own.values.begin(), own.values.end(), int16_t{0});
    return std::nullopt;
  }
  for (size_t i = 0; i < frame_.components; ++i) {
    pixels_.transform(i, coefficients_[i].values.data(), coefficients_[i].last.data());
  }
  if (row_ == mcus.last_row) check_tail();
  return pixels_.write_rows(row_++, out, stride);
}

}  // namespace stoker

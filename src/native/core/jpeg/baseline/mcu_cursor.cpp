#include "core/jpeg/baseline/mcu_cursor.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "core/base/errors.h"
#include "core/jpeg/markers.h"

namespace stoker {
namespace {

constexpr uint64_t kRestartNumbers = 8;
constexpr size_t kMarkerBytes = 2;
// The shortest block: a bit of DC and a bit that ends it.
constexpr uint64_t kLeastBlockBits = 2;

// Of a DC value times its quantisation. Images have a quarter of it; beyond, the inverse DCTs of libjpeg
// differ.
constexpr int32_t kMostDc = 8191;

[[noreturn]] void refuse(uint64_t found, uint64_t wanted, const std::string& what) {
  throw Error(ErrorCode::kBadImage, "The JPEG cannot be decoded whole: " + what + " after " +
                                        std::to_string(found) + " of its " + std::to_string(wanted) +
                                        " restart markers");
}

}  // namespace

bool McuCursor::open(const BaselineFrame& frame, std::span<const McuBlock> mcu) {
  layout_ = mcu;
  at_ = segment_ = 0;
  bytes_ = frame.scan;
  if (!find_tables(frame)) return false;
  find_segments(frame, mcu.size());
  enter(0);
  return true;
}

bool McuCursor::find_tables(const BaselineFrame& frame) {
  std::fill(std::begin(scan_.ac), std::end(scan_.ac), nullptr);
  for (size_t i = 0; i < frame.components; ++i) {
    scan_.dc[i] = tables_.find(frame.dc[frame.component[i].dc], HuffmanClass::kDc);
    scan_.ac[i] = tables_.find(frame.ac[frame.component[i].ac], HuffmanClass::kAc);
    if (scan_.dc[i] == nullptr || scan_.ac[i] == nullptr) return false;
    scan_.most[i] = kMostDc / std::max<int32_t>(frame.quant[frame.component[i].quant][0], 1);
  }
  return true;
}

void McuCursor::find_segments(const BaselineFrame& frame, size_t blocks) {
  total_ = static_cast<uint64_t>(frame.mcu_columns()) * static_cast<uint64_t>(frame.mcu_rows());
  interval_ = frame.restart_interval == 0 ? total_ : frame.restart_interval;
  const uint64_t markers = (total_ - 1) / interval_;
  // An image that claims more than its bytes can hold gets no list of segments.
  if (markers > bytes_.size() / kMarkerBytes) refuse(0, markers, "the data end");
  starts_.clear();
  starts_.push_back(0);
  const uint64_t least = std::max<uint64_t>(interval_ * blocks * kLeastBlockBits / 8, 1);
  for (uint64_t found = 0; found < markers; ++found) {
    const size_t code = next_marker_code(bytes_, starts_.back());
    if (code == bytes_.size()) refuse(found, markers, "the data end");
    if (!is_restart(bytes_[code])) refuse(found, markers, "another marker follows");
    if (bytes_[code] != kRst0 + found % kRestartNumbers) refuse(found, markers, "one out of turn follows");
    if (code - 1 - starts_.back() < least) refuse(found, markers, "too little data follow");
    starts_.push_back(code + 1);
  }
  starts_.push_back(bytes_.size() + kMarkerBytes);
}

std::span<const uint8_t> McuCursor::segment(uint64_t number) const {
  const size_t begin = starts_[number];
  return bytes_.subspan(begin, starts_[number + 1] - kMarkerBytes - begin);
}

void McuCursor::enter(uint64_t number) {
  segment_ = number;
  at_ = number * interval_;
  scan_.restart(segment(number));
}

bool McuCursor::go_to(uint64_t mcu) {
  const uint64_t number = mcu / interval_;
  if (number != segment_) {
    // What is left in a segment whose MCUs were all read is left to libjpeg.
    if (at_ == (segment_ + 1) * interval_ && !scan_.reader.at_end()) return false;
    enter(number);
  }
  const uint64_t between = mcu - at_;
  at_ = mcu;
  if (between == 0) return true;
  need_skips();
  return kernels_.skip(scan_, layout_.data(), layout_.size(), between);
}

void McuCursor::need_skips() {
  for (HuffmanDecoder* ac : scan_.ac) {
    if (ac != nullptr) ac->build_skips();
  }
}

bool McuCursor::decode(uint64_t first, size_t count, std::span<const McuBlock> mcu, bool dc_only) {
  if (dc_only) need_skips();
  const auto decode = dc_only ? kernels_.decode_dc : kernels_.decode;
  std::array<McuBlock, 10> blocks;
  std::copy(mcu.begin(), mcu.end(), blocks.begin());
  while (count > 0) {
    if (!go_to(first)) return false;
    const uint64_t here = std::min<uint64_t>(count, (segment_ + 1) * interval_ - first);
    if (!decode(scan_, blocks.data(), mcu.size(), here)) return false;
    for (size_t i = 0; i < mcu.size(); ++i) {
      blocks[i].values += here * blocks[i].step * kBlockValues;
      blocks[i].last += here * blocks[i].step;
    }
    first += here;
    at_ = first;
    count -= here;
  }
  return at_ < total_ || ends_well();
}

bool McuCursor::skip_all() {
  need_skips();
  while (at_ < total_) {
    if (!go_to(at_)) return false;
    const uint64_t here = std::min(interval_, total_ - at_);
    if (!kernels_.skip(scan_, layout_.data(), layout_.size(), here)) return false;
    at_ += here;
  }
  return ends_well();
}

// Data behind the last MCU, or no marker, are left to libjpeg.
bool McuCursor::ends_well() {
  return scan_.reader.at_end() && scan_.reader.before_marker();
}

}  // namespace stoker

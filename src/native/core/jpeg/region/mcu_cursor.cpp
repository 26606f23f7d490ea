#include "core/jpeg/region/mcu_cursor.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "core/base/errors.h"
#include "core/jpeg/markers.h"

namespace stoker {
namespace {

// The shortest block: a bit of DC and a bit that ends it.
constexpr uint64_t kLeastBlockBits = 2;
// Bytes of data from which a wider window pays, which takes longer to prepare.
constexpr size_t kManyBytes = size_t{512} << 10;
// MCUs from one entry point to the next, and those that are skipped in the time that entering at one takes.
constexpr uint64_t kLeastStep = 8;
constexpr uint64_t kWorthEntering = 4;

[[noreturn]] void refuse(uint64_t number, uint64_t wanted, const std::string& what) {
  throw Error(ErrorCode::kBadImage, "The JPEG cannot be decoded whole: " + what + " after " +
                                        std::to_string(number) + " of its " + std::to_string(wanted) +
                                        " restart markers");
}

}  // namespace

bool McuCursor::open(const FrameHeader& frame, std::span<const uint8_t> data, std::span<const McuBlock> mcu,
                     EntryPoints entries) {
  layout_ = mcu;
  at_ = segment_ = 0;
  bytes_ = data;
  if (!find_tables(frame)) return false;
  find_segments(frame, mcu.size());
  entries_ = entries;
  entered_ = compared_ = skips_ = false;
  const uint64_t most = entries.most();
  step_ = std::max((total_ + most) / (most + 1), kLeastStep);
  points_ = frame.restart_interval == 0 && most != 0 ? (total_ - 1) / step_ : 0;
  passed_ = 0;
  enter(0);
  return true;
}

bool McuCursor::find_tables(const FrameHeader& frame) {
  tables_.start_image();
  std::fill(std::begin(scan_.ac), std::end(scan_.ac), nullptr);
  for (size_t i = 0; i < frame.components; ++i) {
    scan_.dc[i] = tables_.find(frame.dc[frame.component[i].dc], HuffmanClass::kDc);
    scan_.ac[i] = tables_.find(frame.ac[frame.component[i].ac], HuffmanClass::kAc);
    if (scan_.dc[i] == nullptr || scan_.ac[i] == nullptr) return false;
    scan_.most[i] = frame.most_dc(i);
  }
  return true;
}

void McuCursor::find_segments(const FrameHeader& frame, size_t blocks) {
  total_ = static_cast<uint64_t>(frame.mcu_columns()) * static_cast<uint64_t>(frame.mcu_rows());
  interval_ = frame.restart_interval == 0 ? total_ : frame.restart_interval;
  const uint64_t markers = (total_ - 1) / interval_;
  // An image that claims more than its bytes can hold gets no list of segments.
  if (markers > bytes_.size() / kMarkerBytes) refuse(0, markers, "the data end");
  starts_.clear();
  starts_.push_back(0);
  const uint64_t least = std::max<uint64_t>(interval_ * blocks * kLeastBlockBits / 8, 1);
  for (uint64_t number = 0; number < markers; ++number) {
    const size_t code = next_marker_code(bytes_, starts_.back());
    if (code == bytes_.size()) refuse(number, markers, "the data end");
    if (!is_restart(bytes_[code])) refuse(number, markers, "another marker follows");
    if (bytes_[code] != kRst0 + number % kRestartNumbers) refuse(number, markers, "one out of turn follows");
    if (code - 1 - starts_.back() < least) refuse(number, markers, "too little data follow");
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
    // If data remain in a segment whose MCUs were all read, libjpeg decodes the image.
    if (at_ == (segment_ + 1) * interval_ && !scan_.reader.at_end()) return false;
    enter(number);
  }
  return pass_points(mcu) && skip_to(mcu);
}

bool McuCursor::skip_to(uint64_t mcu) {
  const uint64_t between = mcu - at_;
  at_ = mcu;
  if (between == 0) return true;
  need_skips();
  return kernels_.skip(scan_, layout_.data(), layout_.size(), between);
}

// The last known point saves decoding the data before it. After one was used, the next point that is reached
// is compared before others are used.
bool McuCursor::pass_points(uint64_t mcu) {
  const uint64_t last = std::min(mcu / step_, points_);
  if (at_ > passed_ * step_) passed_ = (at_ - 1) / step_;  // those inside of what was decoded
  for (uint64_t i = last; i > passed_ && i * step_ > at_ + kWorthEntering && entered_ == compared_; --i) {
    if (enter_at(i)) break;
  }
  while (passed_ < last) {
    if (!skip_to((passed_ + 1) * step_) || !agrees(++passed_)) return false;
  }
  return true;
}

bool McuCursor::enter_at(uint64_t number) {
  const auto point = entries_.find(number - 1);
  if (!point || point->byte >= bytes_.size()) return false;
  scan_.restart(bytes_.subspan(point->byte));
  scan_.reader.drop(point->bit);
  std::copy(point->predictions.begin(), point->predictions.end(), std::begin(scan_.predictions));
  at_ = number * step_;
  passed_ = number;
  entered_ = true;
  return true;
}

bool McuCursor::agrees(uint64_t number) {
  EntryPoint here;
  const auto position = scan_.reader.position();
  here.byte = static_cast<uint32_t>(position.byte - bytes_.data());
  here.bit = position.bit;
  std::copy(std::begin(scan_.predictions), std::end(scan_.predictions), here.predictions.begin());
  const auto known = entries_.find(number - 1);
  if (!known) entries_.note(number - 1, points_, here);
  compared_ = entered_ && (compared_ || known);
  if (!known || *known == here) return true;
  if (!entered_) entries_.forget();  // what was decoded from the start is right
  return !entered_;
}

void McuCursor::need_skips() {
  if (skips_) return;
  skips_ = true;
  scan_.wide_skips = bytes_.size() >= kManyBytes;
  const int window = scan_.wide_skips ? HuffmanDecoder::kWideSkipWindow : HuffmanDecoder::kSkipWindow;
  for (HuffmanDecoder* ac : scan_.ac) {
    if (ac != nullptr) ac->build_skips(window);
  }
}

bool McuCursor::decode(uint64_t first, size_t count, std::span<const McuBlock> mcu, bool low) {
  if (low) need_skips();
  const auto decode = low ? kernels_.decode_low : kernels_.decode;
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

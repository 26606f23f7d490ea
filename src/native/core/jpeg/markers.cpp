#include "core/jpeg/markers.h"

#include <cstring>
#include <utility>

#include "core/base/errors.h"

namespace stoker {

size_t next_marker_code(std::span<const uint8_t> bytes, size_t at) {
  while (at < bytes.size()) {
    const auto* hit = static_cast<const uint8_t*>(std::memchr(bytes.data() + at, 0xFF, bytes.size() - at));
    if (hit == nullptr) break;
    at = static_cast<size_t>(hit - bytes.data()) + 1;
    if (at < bytes.size() && bytes[at] != 0 && bytes[at] != 0xFF) return at;
  }
  return bytes.size();
}

void fail_jpeg(const std::string& what, size_t offset) {
  throw Error(ErrorCode::kBadImage, what + " at byte " + std::to_string(offset) + " of the JPEG",
              {{}, kUnknown, static_cast<int64_t>(offset), {}});
}

bool MarkerWalk::is_lone() const {
  return marker_ <= kTem || is_restart(marker_) || marker_ == kSoi;  // 0 is a stuffed byte
}

bool MarkerWalk::next() {
  if (end_ == 0) {
    if (bytes_.empty()) return stop("The file is empty", 0);
    if (bytes_.size() < 2 || bytes_[0] != 0xFF || bytes_[1] != kSoi) {
      return stop("No start-of-image marker", 0);
    }
    end_ = 2;
  }
  do {
    size_t at = end_;
    while (at < bytes_.size() && bytes_[at] != 0xFF) ++at;
    while (at < bytes_.size() && bytes_[at] == 0xFF) ++at;
    if (at >= bytes_.size()) return stop("The file is cut short: no further marker", bytes_.size());
    is_plain_ = is_plain_ && at == end_ + 1;
    marker_ = bytes_[at];
    begin_ = end_ = at + 1;
    is_plain_ = is_plain_ && !is_lone();
  } while (is_lone());
  return step();
}

bool MarkerWalk::next_behind_scan() {
  do {
    const size_t at = next_marker_code(bytes_, end_);
    if (at == bytes_.size()) return stop("The file is cut short: no end-of-image marker", at);
    marker_ = bytes_[at];
    begin_ = end_ = at + 1;
  } while (is_lone());
  return step();
}

bool MarkerWalk::step() {
  body_ = {};
  if (marker_ == kEoi) return true;
  if (bytes_.size() - begin_ < 2) return stop("The file is cut short inside a marker segment", begin_);
  const uint32_t length = read_u16(bytes_.subspan(begin_));
  if (length < 2) return stop("A marker segment claims the length " + std::to_string(length), begin_);
  if (length > bytes_.size() - begin_) return stop("The file is cut short inside a marker segment", begin_);
  body_ = bytes_.subspan(begin_ + 2, length - 2);
  end_ = begin_ + length;
  return true;
}

bool MarkerWalk::stop(std::string problem, size_t offset) {
  problem_ = std::move(problem);
  problem_at_ = offset;
  return false;
}

void MarkerWalk::fail() const {
  fail_jpeg(problem_, problem_at_);
}

void ColorHints::read(uint8_t marker, std::span<const uint8_t> body) {
  if (marker == kApp0 && body.size() >= 14 && std::memcmp(body.data(), "JFIF\0", 5) == 0) jfif = true;
  if (marker == kApp14 && body.size() >= 12 && std::memcmp(body.data(), "Adobe", 5) == 0) adobe = body[11];
}

JpegColor ColorHints::color(size_t components) const {
  switch (components) {
    case 1:
      return JpegColor::kGrey;
    case 3:
      if (jfif) return JpegColor::kYcbcr;
      if (adobe) return *adobe == 0 ? JpegColor::kRgb : JpegColor::kYcbcr;
      return ids[0] == 'R' && ids[1] == 'G' && ids[2] == 'B' ? JpegColor::kRgb : JpegColor::kYcbcr;
    case 4:
      return adobe && *adobe != 0 ? JpegColor::kYcck : JpegColor::kCmyk;
    default:
      return JpegColor::kOther;
  }
}

}  // namespace stoker

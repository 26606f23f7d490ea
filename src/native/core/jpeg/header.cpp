// The marker segments of a JPEG, read without libjpeg (ITU-T T.81 annex B; EXIF 2.3 for the orientation).
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "core/base/errors.h"
#include "core/jpeg/jpeg.h"
#include "core/jpeg/markers.h"

namespace stoker {
namespace {

bool is_frame_header(uint8_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != kDht && marker != kJpg && marker != kDac;
}

[[noreturn]] void fail(const std::string& what, size_t offset) {
  throw Error(ErrorCode::kBadImage, what + " at byte " + std::to_string(offset) + " of the JPEG",
              {{}, kUnknown, static_cast<int64_t>(offset), {}});
}

uint32_t read_u16(std::span<const uint8_t> b) {
  return static_cast<uint32_t>(b[0]) << 8 | b[1];
}

// A TIFF header in either byte order, as EXIF embeds it.
class Tiff {
 public:
  explicit Tiff(std::span<const uint8_t> bytes)
      : bytes_(bytes), little_(bytes.size() > 0 && bytes[0] == 'I') {}

  uint32_t u16(size_t at) const { return read(at, 2); }
  uint32_t u32(size_t at) const { return read(at, 4); }
  bool holds(size_t at, size_t count) const { return at <= bytes_.size() && count <= bytes_.size() - at; }

 private:
  uint32_t read(size_t at, size_t count) const {
    uint32_t value = 0;
    for (size_t i = 0; i < count; ++i) value = value << 8 | bytes_[little_ ? at + count - 1 - i : at + i];
    return value;
  }
  std::span<const uint8_t> bytes_;
  bool little_;
};

// 1 unless the first IFD says otherwise; damaged EXIF is no reason to refuse a picture.
int orientation_of(std::span<const uint8_t> segment) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  if (segment.size() < 14 || std::memcmp(segment.data(), kExif.data(), kExif.size()) != 0) return 1;
  const Tiff tiff(segment.subspan(kExif.size()));
  const size_t directory = tiff.u32(4);
  if (!tiff.holds(directory, 2)) return 1;
  const size_t entries = tiff.u16(directory);
  for (size_t i = 0; i < entries; ++i) {
    const size_t at = directory + 2 + 12 * i;
    if (!tiff.holds(at, 12)) return 1;
    if (tiff.u16(at) != 274) continue;
    const uint32_t value = tiff.u16(at + 8);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

struct Adobe {
  bool present = false;
  uint8_t transform = 0;
};

class HeaderWalk {
 public:
  explicit HeaderWalk(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  // Up to the first start-of-scan; leaves the position at that marker's segment.
  JpegInfo run() {
    if (bytes_.empty()) fail("The file is empty", 0);
    if (bytes_.size() < 2 || bytes_[0] != 0xFF || bytes_[1] != kSoi) fail("No start-of-image marker", 0);
    at_ = 2;
    for (;;) {
      const uint8_t marker = next_marker();
      if (marker == kEoi) fail("The image ends before its first scan", at_ - 2);
      if (marker == kTem || is_restart(marker) || marker == kSoi) continue;
      const auto body = segment();
      if (is_frame_header(marker)) frame(marker, body);
      if (marker == kDri && body.size() >= 2) info_.restart_interval = read_u16(body);
      if (marker == kApp1 && info_.orientation == 1) info_.orientation = orientation_of(body);
      if (marker == kApp0) jfif(body);
      if (marker == kApp14) adobe(body);
      if (marker == kSos) break;
    }
    if (!seen_frame_) fail("A scan starts before any frame header", at_);
    info_.color = color();
    return info_;
  }

  // From a position behind a start-of-scan segment to the end-of-image marker.
  void to_end() {
    for (;;) {
      const uint8_t marker = next_entropy_marker();
      if (marker == kEoi) return;
      if (is_frame_header(marker)) fail("A second frame header", at_);
      if (!is_restart(marker) && marker != kTem && marker != kSoi) segment();
    }
  }

 private:
  // Markers may be preceded by fill bytes and, harmlessly, by extraneous data, which libjpeg skips too.
  uint8_t next_marker() {
    for (;;) {
      while (at_ < bytes_.size() && bytes_[at_] != 0xFF) ++at_;
      while (at_ < bytes_.size() && bytes_[at_] == 0xFF) ++at_;
      if (at_ >= bytes_.size()) fail("The file is cut short: no further marker", bytes_.size());
      const uint8_t code = bytes_[at_++];
      if (code != 0) return code;
    }
  }

  uint8_t next_entropy_marker() {
    at_ = next_marker_code(bytes_, at_);
    if (at_ == bytes_.size()) fail("The file is cut short: no end-of-image marker", at_);
    return bytes_[at_++];
  }

  std::span<const uint8_t> segment() {
    if (bytes_.size() - at_ < 2) fail("The file is cut short inside a marker segment", at_);
    const uint32_t length = read_u16(bytes_.subspan(at_));
    if (length < 2) fail("A marker segment claims the length " + std::to_string(length), at_);
    if (length > bytes_.size() - at_) fail("The file is cut short inside a marker segment", at_);
    const auto body = bytes_.subspan(at_ + 2, length - 2);
    at_ += length;
    return body;
  }

  void frame(uint8_t marker, std::span<const uint8_t> body) {
    if (seen_frame_) fail("A second frame header", at_);
    if (body.size() < 6) fail("A frame header of " + std::to_string(body.size()) + " bytes", at_);
    seen_frame_ = true;
    info_.bits = body[0];
    info_.height = static_cast<int32_t>(read_u16(body.subspan(1)));
    info_.width = static_cast<int32_t>(read_u16(body.subspan(3)));
    info_.components = body[5];
    info_.progressive = (marker & 3) == 2;
    info_.lossless = (marker & 3) == 3;
    info_.arithmetic = marker >= 0xC9;
    const auto count = static_cast<size_t>(info_.components);
    if (info_.width == 0 || info_.height == 0) fail("The frame is empty (width or height 0)", at_);
    if (count == 0 || body.size() < 6 + 3 * count) fail("A frame header too short for its components", at_);
    for (size_t i = 0; i < std::min<size_t>(count, 4); ++i) {
      ids_[i] = body[6 + 3 * i];
      info_.sampling[i] = body[7 + 3 * i];
    }
  }

  void jfif(std::span<const uint8_t> body) {
    jfif_ = jfif_ || (body.size() >= 14 && std::memcmp(body.data(), "JFIF\0", 5) == 0);
  }

  void adobe(std::span<const uint8_t> body) {
    if (body.size() >= 12 && std::memcmp(body.data(), "Adobe", 5) == 0) adobe_ = {true, body[11]};
  }

  // The guesses of libjpeg's default_decompress_parms, so that both name the same thing.
  JpegColor color() const {
    switch (info_.components) {
      case 1:
        return JpegColor::kGrey;
      case 3:
        if (jfif_) return JpegColor::kYcbcr;
        if (adobe_.present) return adobe_.transform == 0 ? JpegColor::kRgb : JpegColor::kYcbcr;
        return ids_ == std::array<uint8_t, 4>{'R', 'G', 'B', 0} ? JpegColor::kRgb : JpegColor::kYcbcr;
      case 4:
        return adobe_.present && adobe_.transform != 0 ? JpegColor::kYcck : JpegColor::kCmyk;
      default:
        return JpegColor::kOther;
    }
  }

  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  JpegInfo info_;
  bool jfif_ = false;
  Adobe adobe_;
  std::array<uint8_t, 4> ids_{};
  bool seen_frame_ = false;
};

}  // namespace

const char* subsampling_name(const JpegInfo& info) {
  if (info.components == 1) return "grey";
  if (info.components != 3 && info.components != 4) return "other";
  if (info.sampling[1] != 0x11 || info.sampling[2] != 0x11) return "other";
  if (info.components == 4 && info.sampling[3] != info.sampling[0]) return "other";
  switch (info.sampling[0]) {
    case 0x11:
      return "4:4:4";
    case 0x21:
      return "4:2:2";
    case 0x22:
      return "4:2:0";
    case 0x12:
      return "4:4:0";
    case 0x41:
      return "4:1:1";
    default:
      return "other";
  }
}

void refuse_more_pixels(Extent image, uint64_t max_pixels) {
  if (static_cast<uint64_t>(image.width) * static_cast<uint64_t>(image.height) <= max_pixels) return;
  throw Error(ErrorCode::kImageTooLarge, "The image declares " + std::to_string(image.width) + " x " +
                                             std::to_string(image.height) + " pixels; the limit is " +
                                             std::to_string(max_pixels) + " (raise max_pixels to accept it)");
}

JpegInfo probe_jpeg(std::span<const uint8_t> bytes) {
  return HeaderWalk(bytes).run();
}

JpegInfo check_jpeg(std::span<const uint8_t> bytes) {
  HeaderWalk walk(bytes);
  const JpegInfo info = walk.run();
  walk.to_end();
  return info;
}

}  // namespace stoker

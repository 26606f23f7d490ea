// The marker segments of a JPEG, read without libjpeg (ITU-T T.81 annex B; XMP part 3 for its segment).
#include "core/jpeg/header.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "core/base/errors.h"
#include "core/base/exif.h"
#include "core/jpeg/least_data.h"

namespace stoker {
namespace {

bool is_frame_header(uint8_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != kDht && marker != kJpg && marker != kDac;
}

class HeaderReader {
 public:
  explicit HeaderReader(std::span<const uint8_t> bytes) : walk_(bytes) {}

  // Up to the first start-of-scan.
  JpegInfo run() {
    do {
      if (!walk_.next()) walk_.fail();
      const uint8_t marker = walk_.marker();
      const auto body = walk_.body();
      if (marker == kEoi) fail_jpeg("The image ends before its first scan", walk_.end() - 2);
      if (is_frame_header(marker)) frame(marker, body);
      if (marker == kDri && body.size() >= 2) info_.restart_interval = read_u16(body);
      if (marker == kApp1 && exif_.empty() && begins_with(body, kExifSegment)) exif_ = body;
      if (marker == kApp1 && begins_with(body, kXmpSegment)) xmp_ = body.subspan(kXmpSegment.size());
      hints_.read(marker, body);
    } while (walk_.marker() != kSos);
    if (!seen_frame_) fail_jpeg("A scan starts before any frame header", walk_.end());
    info_.color = hints_.color(static_cast<size_t>(info_.components));
    info_.orientation = orientation_in(exif_, xmp_);
    return info_;
  }

  // Behind that: throws kBadImage where fewer bytes follow than the first scan of such an image has.
  void refuse_missing_data(std::span<const uint8_t> bytes) const {
    const ScanCoding coding = info_.arithmetic                      ? ScanCoding::kArithmetic
                              : info_.progressive || info_.lossless ? ScanCoding::kProgressive
                                                                    : ScanCoding::kSequential;
    stoker::refuse_missing_data(coding, {info_.width, info_.height}, blocks_of_scan(walk_.body()),
                                bytes.size() - walk_.end());
  }

  size_t scan() const { return walk_.end(); }

 private:
  // Of the components that a start-of-scan segment names; 0 where libjpeg does not go on.
  uint64_t blocks_of_scan(std::span<const uint8_t> scan) const {
    const auto count = static_cast<size_t>(info_.components);
    if (count > hints_.ids.size()) return 0;
    int most_across = 1, most_down = 1;
    for (size_t i = 0; i < count; ++i) {
      most_across = std::max(most_across, info_.sampling[i] >> 4);
      most_down = std::max(most_down, info_.sampling[i] & 15);
    }
    uint64_t blocks = 0;
    std::array<bool, 4> taken{};
    for (size_t at = 1; at < scan.size() && at < 1 + 2 * size_t{scan[0]}; at += 2) {
      size_t i = 0;
      while (i < count && (taken[i] || hints_.ids[i] != scan[at])) ++i;
      if (i == count) return 0;
      taken[i] = true;
      blocks += blocks_of({info_.width, info_.height}, info_.sampling[i] >> 4, info_.sampling[i] & 15,
                          most_across, most_down);
    }
    return blocks;
  }

  void frame(uint8_t marker, std::span<const uint8_t> body) {
    const auto fail = [&](const std::string& what) { fail_jpeg(what, walk_.end()); };
    if (seen_frame_) fail("A second frame header");
    if (body.size() < 6) fail("A frame header of " + std::to_string(body.size()) + " bytes");
    seen_frame_ = true;
    info_.bits = body[0];
    info_.height = static_cast<int32_t>(read_u16(body.subspan(1)));
    info_.width = static_cast<int32_t>(read_u16(body.subspan(3)));
    info_.components = body[5];
    info_.progressive = (marker & 3) == 2;
    info_.lossless = (marker & 3) == 3;
    info_.arithmetic = marker >= 0xC9;
    const auto count = static_cast<size_t>(info_.components);
    if (info_.width == 0 || info_.height == 0) fail("The frame is empty (width or height 0)");
    if (count == 0 || body.size() < 6 + 3 * count) fail("A frame header too short for its components");
    for (size_t i = 0; i < std::min<size_t>(count, 4); ++i) {
      hints_.ids[i] = body[6 + 3 * i];
      info_.sampling[i] = body[7 + 3 * i];
    }
  }

  MarkerWalk walk_;
  JpegInfo info_;
  ColorHints hints_;
  std::span<const uint8_t> exif_, xmp_;
  bool seen_frame_ = false;
};

void refuse_undecodable(const JpegInfo& info) {
  std::string what;
  if (info.lossless) {
    what = "A lossless JPEG, which hardly any reader decodes; convert it to baseline JPEG or PNG";
  } else if (info.bits != 8) {
    what = "A JPEG with " + std::to_string(info.bits) +
           " bits per sample; only 8 are supported, so convert it first";
  } else if (info.color == JpegColor::kOther) {
    what = "A JPEG with " + std::to_string(info.components) +
           " components of unknown meaning; convert it to RGB first";
  } else {
    return;
  }
  throw Error(ErrorCode::kBadImage, what);
}

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

JpegInfo probe_jpeg(std::span<const uint8_t> bytes) {
  return HeaderReader(bytes).run();
}

JpegInfo check_jpeg(std::span<const uint8_t> bytes) {
  HeaderReader reader(bytes);
  const JpegInfo info = reader.run();
  refuse_undecodable(info);
  reader.refuse_missing_data(bytes);
  check_to_end(bytes, reader.scan());
  return info;
}

void check_to_end(std::span<const uint8_t> bytes, size_t at) {
  MarkerWalk walk(bytes, at);
  do {
    if (!walk.next_behind_scan()) walk.fail();
    if (is_frame_header(walk.marker())) fail_jpeg("A second frame header", walk.begin());
  } while (walk.marker() != kEoi);
}

}  // namespace stoker

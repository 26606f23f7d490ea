// The markers of a JPEG file (ITU-T T.81 table B.1), the walk over its segments, and what they say of
// colours.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stoker {

inline constexpr uint8_t kTem = 0x01, kSof0 = 0xC0, kSof1 = 0xC1, kSof2 = 0xC2, kDht = 0xC4, kJpg = 0xC8,
                         kDac = 0xCC, kRst0 = 0xD0, kRst7 = 0xD7, kSoi = 0xD8, kEoi = 0xD9, kSos = 0xDA,
                         kDqt = 0xDB, kDri = 0xDD, kApp0 = 0xE0, kApp1 = 0xE1, kApp2 = 0xE2, kApp14 = 0xEE,
                         kApp15 = 0xEF, kCom = 0xFE;

inline constexpr size_t kMarkerBytes = 2;       // 0xFF, and which it is
inline constexpr uint64_t kRestartNumbers = 8;  // RST0 to RST7 follow each other in turn

inline bool is_restart(uint8_t marker) {
  return marker >= kRst0 && marker <= kRst7;
}

// Where the code of the next marker is, from `at` on in entropy-coded data, in which any other 0xFF is
// stuffed; the number of bytes if there is none.
size_t next_marker_code(std::span<const uint8_t> bytes, size_t at);

// Goes through the segments of a file. Markers that have none (TEM, RSTn, SOI) are stepped over, except EOI.
class MarkerWalk {
 public:
  explicit MarkerWalk(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  // From within entropy-coded data, for next_behind_scan().
  MarkerWalk(std::span<const uint8_t> bytes, size_t at) : bytes_(bytes), end_(at) {}

  // Goes on to the next marker, before the first scan; fill bytes and extraneous data before it are stepped
  // over, as libjpeg does. False where there is none, or its segment is damaged.
  bool next();

  // The same from behind a start-of-scan segment, over the entropy-coded data.
  bool next_behind_scan();

  uint8_t marker() const { return marker_; }
  std::span<const uint8_t> body() const { return body_; }  // what its segment holds
  size_t begin() const { return begin_; }                  // of its segment, right behind the marker
  size_t end() const { return end_; }                      // of its segment

  // Whether the file had only segments so far.
  bool is_plain() const { return is_plain_; }

  // Throws kBadImage: why the last step was false.
  [[noreturn]] void fail() const;

 private:
  bool stop(std::string problem, size_t offset);
  bool step();
  bool is_lone() const;

  std::span<const uint8_t> bytes_;
  uint8_t marker_ = 0;
  std::span<const uint8_t> body_;
  size_t begin_ = 0, end_ = 0;
  bool is_plain_ = true;
  std::string problem_;
  size_t problem_at_ = 0;
};

// Throws kBadImage: `what` is wrong at a byte of a JPEG.
[[noreturn]] void fail_jpeg(const std::string& what, size_t offset);

// What a segment APP1 of EXIF, and of XMP, begins with.
inline constexpr std::string_view kExifSegment("Exif\0\0", 6),
    kXmpSegment("http://ns.adobe.com/xap/1.0/\0", 29);

inline bool begins_with(std::span<const uint8_t> body, std::string_view name) {
  return body.size() >= name.size() && std::memcmp(body.data(), name.data(), name.size()) == 0;
}

// An unsigned number of two bytes, the most significant first.
inline uint32_t read_u16(std::span<const uint8_t> bytes) {
  return uint32_t{bytes[0]} << 8 | bytes[1];
}

enum class JpegColor { kGrey, kYcbcr, kRgb, kCmyk, kYcck, kOther };

// What the file says of the colours of its components.
struct ColorHints {
  bool jfif = false;
  std::optional<uint8_t> adobe = {};  // the colour transform of Adobe's marker
  std::array<uint8_t, 4> ids{};       // of the components

  // Takes notice of a JFIF or Adobe segment.
  void read(uint8_t marker, std::span<const uint8_t> body);

  // By the rules of libjpeg's default_decompress_parms.
  JpegColor color(size_t components) const;
};

}  // namespace stoker

#include "core/base/exif.h"

#include <cstring>
#include <string_view>

namespace stoker {
namespace {

constexpr std::string_view kIntroduction("Exif\0\0", 6);
constexpr uint32_t kOrientation = 274;
constexpr uint32_t kShort = 3, kLong = 4;  // types of values
constexpr size_t kEntryBytes = 12;         // tag, type, count, and the value or where it is

std::string_view text_of(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A TIFF file in either order of bytes.
class Tiff {
 public:
  explicit Tiff(std::span<const uint8_t> bytes) : bytes_(bytes), little_(text_of(bytes).starts_with("II")) {}

  bool has_signature() const {
    constexpr std::string_view kBig("MM\0*", 4), kLittle("II*\0", 4);
    return text_of(bytes_).starts_with(little_ ? kLittle : kBig);
  }
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

}  // namespace

std::optional<int> orientation_in_exif(std::span<const uint8_t> exif) {
  for (int i = 0; i < 2 && text_of(exif).starts_with(kIntroduction); ++i) {  // some writers have it twice
    exif = exif.subspan(kIntroduction.size());
  }
  const Tiff tiff(exif);
  if (!tiff.has_signature() || !tiff.holds(4, 4)) return std::nullopt;
  const size_t directory = tiff.u32(4);
  if (!tiff.holds(directory, 2)) return std::nullopt;
  const size_t entries = tiff.u16(directory);
  for (size_t i = 0; i < entries; ++i) {
    const size_t at = directory + 2 + kEntryBytes * i;
    if (!tiff.holds(at, kEntryBytes)) return std::nullopt;
    if (tiff.u16(at) != kOrientation) continue;
    const uint32_t type = tiff.u16(at + 2), count = tiff.u32(at + 4);
    if (type == kShort && (count == 1 || count == 2)) return static_cast<int>(tiff.u16(at + 8));
    if (type == kLong && count == 1) return static_cast<int>(tiff.u32(at + 8));
  }
  return std::nullopt;
}

std::optional<int> orientation_in_xmp(std::span<const uint8_t> xmp) {
  constexpr std::string_view kName = "tiff:Orientation";
  std::string_view left = text_of(xmp);
  for (size_t at = left.find(kName); at != std::string_view::npos; at = left.find(kName)) {
    left.remove_prefix(at + kName.size());
    std::string_view value = left;
    if (value.starts_with(">")) {
      value.remove_prefix(1);
    } else if (value.starts_with("=\"")) {
      value.remove_prefix(2);
    } else {
      continue;
    }
    if (!value.empty() && value[0] >= '0' && value[0] <= '9') return value[0] - '0';
  }
  return std::nullopt;
}

int orientation_in(std::span<const uint8_t> exif, std::span<const uint8_t> xmp) {
  std::optional<int> value = orientation_in_exif(exif);
  if (!value) value = orientation_in_xmp(xmp);
  return value && *value >= 1 && *value <= 8 ? *value : 1;
}

}  // namespace stoker

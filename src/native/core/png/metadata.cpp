// The chunks of a PNG that say how it is seen upright: those that Pillow looks at. In eXIf, EXIF is as it is;
// ImageMagick writes it as text in hexadecimal digits, and XMP is text by its specification.
#include <zlib.h>

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/exif.h"
#include "core/png/chunks.h"
#include "core/png/decoder.h"

namespace stoker {
namespace {

constexpr size_t kSignatureBytes = 8;
constexpr int kMostChunks = 1 << 16;           // more take time, and no image has them
constexpr size_t kMostText = size_t{1} << 20;  // of one, inflated

struct Text {
  std::string_view text;
  bool is_deflated = false;

  // Nothing where it is damaged, or more than there may be.
  std::string inflated() const {
    if (!is_deflated) return std::string(text);
    std::string out(std::min(kMostText, kMostInflation * text.size() + 1), '\0');
    uLongf size = out.size();
    const auto* from = reinterpret_cast<const Bytef*>(text.data());
    const int result = uncompress(reinterpret_cast<Bytef*>(out.data()), &size, from, text.size());
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    out.resize(result == Z_OK ? size : 0);
    return out;
  }
};

// Up to the next zero, which is taken, too; nothing where there is none.
std::optional<std::string_view> take_word(std::string_view& left) {
  const size_t end = left.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view word = left.substr(0, end);
  left.remove_prefix(end + 1);
  return word;
}

// Text behind its keyword, if the two bytes of flags, or the one, or none, are known.
std::optional<Text> text_in(std::string_view kind, std::string_view left) {
  if (kind == "tEXt") return Text{left};
  const size_t flags = kind == "zTXt" ? 1 : 2;
  if (left.size() < flags || left[flags - 1] != 0) return std::nullopt;  // the method of compression
  const bool is_deflated = kind == "zTXt" || left[0] != 0;
  left.remove_prefix(flags);
  if (kind == "iTXt" && !(take_word(left) && take_word(left)))
    return std::nullopt;  // language, translated keyword
  return Text{left, is_deflated};
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// What ImageMagick writes: a line without text, one of the name, one of the length, then digits.
std::string from_digits(std::string_view profile) {
  for (int line = 0; line < 3; ++line) {
    const size_t end = profile.find('\n');
    if (end == std::string_view::npos) return {};
    profile.remove_prefix(end + 1);
  }
  std::string digits, bytes;
  for (const char c : profile) {
    if (digit_of(c) >= 0) digits += c;
  }
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(digit_of(digits[i]) * 16 + digit_of(digits[i + 1]));
  }
  return bytes;
}

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

int png_orientation(std::span<const uint8_t> file) {
  std::string_view left(reinterpret_cast<const char*>(file.data()), file.size());
  left.remove_prefix(std::min(kSignatureBytes, left.size()));
  std::string_view exif;
  Text profile, xmp;
  for (int i = 0; i < kMostChunks && left.size() >= kChunkHead + kChunkSum; ++i) {
    size_t size = 0;
    for (size_t k = 0; k < 4; ++k) size = size << 8 | static_cast<uint8_t>(left[k]);
    if (size > left.size() - kChunkHead - kChunkSum) break;
    const std::string_view kind = left.substr(4, 4);
    std::string_view data = left.substr(kChunkHead, size);
    left.remove_prefix(kChunkHead + size + kChunkSum);
    if (kind == "eXIf") exif = data;
    if (kind != "tEXt" && kind != "zTXt" && kind != "iTXt") continue;
    const auto keyword = take_word(data);
    const auto text = keyword ? text_in(kind, data) : std::nullopt;
    if (text && *keyword == "Raw profile type exif") profile = *text;
    if (text && *keyword == "XML:com.adobe.xmp") xmp = *text;
  }
  const std::string digits = exif.empty() ? from_digits(profile.inflated()) : std::string();
  return orientation_in(bytes_of(exif.empty() ? digits : exif), bytes_of(xmp.inflated()));
}

}  // namespace stoker

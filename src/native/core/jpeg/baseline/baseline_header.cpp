#include "core/jpeg/baseline/baseline_header.h"

#include <cstring>

#include "core/jpeg/baseline/zigzag.h"
#include "core/jpeg/markers.h"

namespace stoker {
namespace {

constexpr size_t kTables = 4;

class Reader {
 public:
  Reader(std::span<const uint8_t> bytes, BaselineFrame& frame) : bytes_(bytes), frame_(frame) {}

  bool run() {
    frame_ = {};
    if (bytes_.size() < 4 || bytes_[0] != 0xFF || bytes_[1] != kSoi) return false;
    size_t at = 2;
    for (;;) {
      if (bytes_.size() - at < 4 || bytes_[at] != 0xFF) return false;
      const uint8_t marker = bytes_[at + 1];
      const size_t length = size_t{bytes_[at + 2]} << 8 | bytes_[at + 3];
      if (length < 2 || length > bytes_.size() - at - 2) return false;
      const auto body = bytes_.subspan(at + 4, length - 2);
      at += 2 + length;
      if (marker == kSos) {
        frame_.scan = bytes_.subspan(at);
        return scan(body) && is_ycbcr();
      }
      if (!segment(marker, body)) return false;
    }
  }

 private:
  bool segment(uint8_t marker, std::span<const uint8_t> body) {
    switch (marker) {
      case kSof0:
      case kSof1:
        return frame(body);
      case kDht:
        return huffman(body);
      case kDqt:
        return quant(body);
      case kDri:
        if (body.size() != 2) return false;
        frame_.restart_interval = uint32_t{body[0]} << 8 | body[1];
        return true;
      case kApp0:
        jfif_ = jfif_ || (body.size() >= 14 && std::memcmp(body.data(), "JFIF\0", 5) == 0);
        return true;
      case kApp14:
        if (body.size() >= 12 && std::memcmp(body.data(), "Adobe", 5) == 0) adobe_ = body[11];
        return true;
      default:
        return (marker > kApp0 && marker <= kApp15) || marker == kCom;
    }
  }

  bool frame(std::span<const uint8_t> body) {
    if (frame_.components != 0 || body.size() < 6 || body[0] != 8) return false;
    frame_.size = {body[3] << 8 | body[4], body[1] << 8 | body[2]};
    frame_.components = body[5];
    if (frame_.size.width == 0 || frame_.size.height == 0) return false;
    if (frame_.components != 1 && frame_.components != 3) return false;
    if (body.size() != 6 + 3 * frame_.components) return false;
    for (size_t i = 0; i < frame_.components; ++i) {
      const auto part = body.subspan(6 + 3 * i, 3);
      if (part[2] >= kTables) return false;
      frame_.component[i] = {part[0], part[2], 0, 0};
      for (size_t k = 0; k < i; ++k) {
        if (frame_.component[k].id == part[0]) return false;
      }
      if (!sampling(i, part[1])) return false;
    }
    return true;
  }

  // A lone component is stored block by block, whatever its factors are.
  bool sampling(size_t component, uint8_t factors) {
    const int32_t across = factors >> 4, down = factors & 15;
    if (across < 1 || down < 1) return false;
    if (frame_.components == 1) return across <= 4 && down <= 4;
    if (component > 0) return across == 1 && down == 1;
    frame_.across = across;
    frame_.down = down;
    return across <= 2 && down <= 2;
  }

  bool huffman(std::span<const uint8_t> body) {
    while (!body.empty()) {
      if (body.size() < 17) return false;
      const size_t kind = body[0] >> 4, number = body[0] & 15;
      if (kind > 1 || number >= kTables) return false;
      HuffmanCode& code = (kind == 0 ? frame_.dc : frame_.ac)[number];
      code = {};
      size_t total = 0;
      for (size_t i = 0; i < 16; ++i) total += code.counts[i] = body[1 + i];
      body = body.subspan(17);
      if (total > body.size() || total > code.symbols.size()) return false;
      std::memcpy(code.symbols.data(), body.data(), total);
      body = body.subspan(total);
    }
    return true;
  }

  bool quant(std::span<const uint8_t> body) {
    while (!body.empty()) {
      if (body.size() < 1 + kBlockValues || body[0] >= kTables) return false;
      for (size_t i = 0; i < kBlockValues; ++i) frame_.quant[body[0]][kZigzag[i]] = body[1 + i];
      quantised_ |= 1U << body[0];
      body = body.subspan(1 + kBlockValues);
    }
    return true;
  }

  bool scan(std::span<const uint8_t> body) {
    const size_t count = frame_.components;
    if (count == 0 || body.size() != 4 + 2 * count || body[0] != count) return false;
    for (size_t i = 0; i < count; ++i) {
      BaselineComponent& component = frame_.component[i];
      component.dc = body[2 + 2 * i] >> 4;
      component.ac = body[2 + 2 * i] & 15;
      if (body[1 + 2 * i] != component.id || component.dc >= kTables || component.ac >= kTables) return false;
      if ((quantised_ >> component.quant & 1) == 0) return false;
    }
    const auto range = body.subspan(1 + 2 * count);
    return range[0] == 0 && range[1] == kBlockValues - 1 && range[2] == 0;
  }

  // By libjpeg's rules, and only where they leave no doubt.
  bool is_ycbcr() const {
    if (frame_.components == 1 || jfif_) return true;
    if (adobe_ >= 0) return adobe_ == 1;
    const auto& c = frame_.component;
    return c[0].id == 1 && c[1].id == 2 && c[2].id == 3;
  }

  std::span<const uint8_t> bytes_;
  BaselineFrame& frame_;
  uint32_t quantised_ = 0;  // bit i: table i is there
  bool jfif_ = false;
  int adobe_ = -1;  // its colour transform
};

}  // namespace

bool read_baseline(std::span<const uint8_t> bytes, BaselineFrame& frame) {
  return Reader(bytes, frame).run();
}

}  // namespace stoker

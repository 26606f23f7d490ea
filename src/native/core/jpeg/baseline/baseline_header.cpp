#include "core/jpeg/baseline/baseline_header.h"

#include <cstring>

#include "core/jpeg/markers.h"

namespace stoker {
namespace {

constexpr size_t kTables = 4;

class BaselineHeaderReader {
 public:
  BaselineHeaderReader(std::span<const uint8_t> bytes, BaselineFrame& frame) : bytes_(bytes), frame_(frame) {}

  bool run() {
    frame_ = {};
    MarkerWalk walk(bytes_);
    while (walk.next() && walk.is_plain()) {
      if (walk.marker() == kSos) {
        frame_.scan = bytes_.subspan(walk.end());
        return scan(walk.body()) && is_supported(hints_.color(frame_.components));
      }
      if (!segment(walk.marker(), walk.body())) return false;
    }
    return false;
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
        frame_.restart_interval = read_u16(body);
        return true;
      default:
        hints_.read(marker, body);
        return (marker >= kApp0 && marker <= kApp15) || marker == kCom;
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
      hints_.ids[i] = part[0];
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
    return true;  // whatever the band of coefficients: a sequential scan has all of them
  }

  static bool is_supported(JpegColor color) {
    return color == JpegColor::kGrey || color == JpegColor::kYcbcr;
  }

  std::span<const uint8_t> bytes_;
  BaselineFrame& frame_;
  uint32_t quantised_ = 0;  // bit i: table i is there
  ColorHints hints_;
};

}  // namespace

bool read_baseline_header(std::span<const uint8_t> bytes, BaselineFrame& frame) {
  return BaselineHeaderReader(bytes, frame).run();
}

}  // namespace stoker

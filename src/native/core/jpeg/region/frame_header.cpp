#include "core/jpeg/region/frame_header.h"

#include <cstring>

namespace stoker {
namespace {

constexpr size_t kTables = 4;

bool is_supported(JpegColor color) {
  return color == JpegColor::kGrey || color == JpegColor::kYcbcr;
}

}  // namespace

bool FrameReader::open(std::span<const uint8_t> bytes) {
  bytes_ = bytes;
  frame_ = {};
  hints_ = {};
  in_scans_ = false;
  quantised_ = 0;
  MarkerWalk walk(bytes_);
  if (!read(walk) || ended_ || !is_supported(hints_.color(frame_.components))) return false;
  in_scans_ = true;
  return true;
}

bool FrameReader::next(size_t at) {
  MarkerWalk walk(bytes_, at);
  return read(walk);
}

bool FrameReader::read(MarkerWalk& walk) {
  ended_ = false;
  while (walk.next() && walk.is_plain()) {
    ended_ = walk.marker() == kEoi;
    if (ended_) return true;
    if (walk.marker() == kSos) {
      scan_.data = bytes_.subspan(walk.end());
      return read_scan(walk.body());
    }
    if (!read_segment(walk.marker(), walk.body())) return false;
  }
  return false;
}

bool FrameReader::read_segment(uint8_t marker, std::span<const uint8_t> body) {
  switch (marker) {
    case kSof0:
    case kSof1:
    case kSof2:
      return read_frame(marker, body);
    case kDht:
      return read_huffman(body);
    case kDqt:
      return read_quant(body);
    case kDri:
      if (body.size() != 2) return false;
      frame_.restart_interval = read_u16(body);
      return true;
    default:
      if (!in_scans_) hints_.read(marker, body);
      return (marker >= kApp0 && marker <= kApp15) || marker == kCom;
  }
}

bool FrameReader::read_frame(uint8_t marker, std::span<const uint8_t> body) {
  if (frame_.components != 0 || body.size() < 6 || body[0] != 8) return false;
  frame_.progressive = marker == kSof2;
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
    if (!read_sampling(i, part[1])) return false;
  }
  return true;
}

// A lone component is stored block by block, whatever its factors are.
bool FrameReader::read_sampling(size_t component, uint8_t factors) {
  const int32_t across = factors >> 4, down = factors & 15;
  if (across < 1 || down < 1) return false;
  if (frame_.components == 1) return across <= 4 && down <= 4;
  if (component > 0) return across == 1 && down == 1;
  frame_.across = across;
  frame_.down = down;
  return across <= 2 && down <= 2;
}

bool FrameReader::read_huffman(std::span<const uint8_t> body) {
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

// libjpeg uses the tables that are known when the first scan of a component begins.
bool FrameReader::read_quant(std::span<const uint8_t> body) {
  if (in_scans_) return false;
  while (!body.empty()) {
    if (body.size() < 1 + kBlockValues || body[0] >= kTables) return false;
    for (size_t i = 0; i < kBlockValues; ++i) frame_.quant[body[0]][kZigzag[i]] = body[1 + i];
    quantised_ |= 1U << body[0];
    body = body.subspan(1 + kBlockValues);
  }
  return true;
}

bool FrameReader::read_scan(std::span<const uint8_t> body) {
  const size_t count = body.empty() ? 0 : body[0];
  if (count == 0 || count > frame_.components || body.size() != 4 + 2 * count) return false;
  scan_.components = count;
  size_t next = 0;
  for (size_t i = 0; i < count; ++i, ++next) {
    while (next < frame_.components && frame_.component[next].id != body[1 + 2 * i]) ++next;
    if (next == frame_.components) return false;
    FrameComponent& component = frame_.component[next];
    component.dc = body[2 + 2 * i] >> 4;
    component.ac = body[2 + 2 * i] & 15;
    if (component.dc >= kTables || component.ac >= kTables) return false;
    if ((quantised_ >> component.quant & 1) == 0) return false;
    scan_.component[i] = next;
  }
  const auto band = body.last(3);
  scan_.first = band[0];
  scan_.last = band[1];
  scan_.high = band[2] >> 4;
  scan_.low = band[2] & 15;
  return true;
}

}  // namespace stoker

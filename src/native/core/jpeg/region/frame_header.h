// The headers of a JPEG, as far as the decoders of our own go; everything else is libjpeg's.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/pixels.h"
#include "core/jpeg/markers.h"
#include "core/jpeg/region/entropy_kernels.h"
#include "core/jpeg/region/huffman.h"

namespace stoker {

using QuantTable = std::array<uint16_t, kBlockValues>;  // in rows, as blocks are

struct FrameComponent {
  uint8_t id = 0;
  uint8_t quant = 0;  // table numbers, 0..3; those of Huffman tables are the last scan's
  uint8_t dc = 0;
  uint8_t ac = 0;
};

// An image of one component, or of YCbCr with chroma at full or half width and height.
struct FrameHeader {
  Extent size;
  bool progressive = false;
  size_t components = 0;
  int32_t across = 1;  // luma blocks of an MCU, by columns and rows
  int32_t down = 1;
  std::array<FrameComponent, kMostComponents> component{};
  std::array<QuantTable, 4> quant{};
  // Tables and parameters of a scan, which segments may change before the next scan.
  uint32_t restart_interval = 0;  // MCUs; 0: there are no markers
  std::array<HuffmanCode, 4> dc{};
  std::array<HuffmanCode, 4> ac{};

  int32_t mcu_columns() const { return (size.width + 8 * across - 1) / (8 * across); }
  int32_t mcu_rows() const { return (size.height + 8 * down - 1) / (8 * down); }
  // Luma blocks of an MCU, or the one of another component.
  int32_t across_of(size_t i) const { return i == 0 ? across : 1; }
  int32_t down_of(size_t i) const { return i == 0 ? down : 1; }
  // Of a DC value and of its negative. Those of images are a quarter of it; beyond, the inverse DCTs of
  // libjpeg differ.
  int32_t most_dc(size_t i) const { return 8191 / std::max<int32_t>(quant[component[i].quant][0], 1); }
};

struct ScanHeader {
  size_t components = 0;
  std::array<size_t, kMostComponents> component{};  // indices into FrameHeader::component, which rise
  // The band of coefficients, in zigzag order, and the lowest bits of it that were known and that will be.
  uint32_t first = 0;
  uint32_t last = 0;
  uint32_t high = 0;
  uint32_t low = 0;
  std::span<const uint8_t> data;  // the entropy-coded data, and what follows them
};

// Reads the segments up to each scan. All functions return false for anything but 8-bit components,
// Huffman-coded, in a layout that FrameHeader can describe, or if anything is unusual.
class FrameReader {
 public:
  // Up to the first scan. `bytes` must live as long as this is read from.
  bool open(std::span<const uint8_t> bytes);

  // From the marker at byte `at`, behind the data of a scan, to the next scan, or to the end of the image.
  bool next(size_t at);
  bool ended() const { return ended_; }

  const FrameHeader& frame() const { return frame_; }
  const ScanHeader& scan() const { return scan_; }
  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  bool read(MarkerWalk& walk);
  bool read_segment(uint8_t marker, std::span<const uint8_t> body);
  bool read_frame(uint8_t marker, std::span<const uint8_t> body);
  bool read_sampling(size_t component, uint8_t factors);
  bool read_huffman(std::span<const uint8_t> body);
  bool read_quant(std::span<const uint8_t> body);
  bool read_scan(std::span<const uint8_t> body);

  std::span<const uint8_t> bytes_;
  FrameHeader frame_;
  ScanHeader scan_;
  bool in_scans_ = false;
  bool ended_ = false;
  uint32_t quantised_ = 0;  // bit i: table i is there
  ColorHints hints_;
};

}  // namespace stoker

// The headers of a baseline JPEG, as far as the decoder of our own goes; everything else is libjpeg's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/pixels.h"
#include "core/jpeg/baseline/entropy_kernels.h"
#include "core/jpeg/baseline/huffman.h"

namespace stoker {

using QuantTable = std::array<uint16_t, kBlockValues>;  // in rows, as blocks are

struct BaselineComponent {
  uint8_t id = 0;
  uint8_t quant = 0;  // table numbers, 0..3
  uint8_t dc = 0;
  uint8_t ac = 0;
};

// An image of one component, or of YCbCr with chroma at full or half width and height.
struct BaselineFrame {
  Extent size;
  size_t components = 0;
  int32_t across = 1;  // luma blocks of an MCU, by columns and rows
  int32_t down = 1;
  uint32_t restart_interval = 0;  // MCUs; 0: there are no markers
  std::array<BaselineComponent, kMostComponents> component{};
  std::array<QuantTable, 4> quant{};
  std::array<HuffmanCode, 4> dc{};
  std::array<HuffmanCode, 4> ac{};
  std::span<const uint8_t> scan;  // the entropy-coded data, and what follows them

  int32_t mcu_columns() const { return (size.width + 8 * across - 1) / (8 * across); }
  int32_t mcu_rows() const { return (size.height + 8 * down - 1) / (8 * down); }
};

// Fills in `frame`. False for anything but one scan of 8-bit components, Huffman-coded and sequential, in a
// layout that BaselineFrame can say, without the least oddity.
bool read_baseline_header(std::span<const uint8_t> bytes, BaselineFrame& frame);

}  // namespace stoker

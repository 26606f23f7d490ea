// A walk over the MCUs of a baseline scan, which jumps to restart markers where there are any.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/jpeg/baseline/baseline_header.h"
#include "core/jpeg/baseline/entropy_kernels.h"

namespace stoker {

class McuCursor {
 public:
  explicit McuCursor(const EntropyKernels& kernels) : kernels_(kernels) {}

  // False where the frame's tables cannot be decoded with. Throws kBadImage where restart markers
  // are missing, out of turn, or have too little between them: no such image can be decoded whole.
  // `mcu` names the component of each block of an MCU.
  bool open(const BaselineFrame& frame, std::span<const McuBlock> mcu);

  // Instead of decode(): reads all MCUs and keeps nothing of them. False where any decode() would be.
  bool skip_all();

  // After a decode() or skip_all() that was true: whether the last MCU was read, and where the marker behind
  // it is, in bytes from the start of the scan.
  bool is_done() const { return at_ == total_; }
  size_t marker_at() const { return static_cast<size_t>(scan_.reader.marker() - bytes_.data()); }

  // Decodes the MCUs first .. first + count - 1 to the places of `mcu`, or only their DC values. Must not go
  // back. False as the kernels.
  bool decode(uint64_t first, size_t count, std::span<const McuBlock> mcu, bool dc_only);

 private:
  bool find_tables(const BaselineFrame& frame);
  void find_segments(const BaselineFrame& frame, size_t blocks);
  bool go_to(uint64_t mcu);
  void need_skips();
  bool ends_well();
  void enter(uint64_t number);
  std::span<const uint8_t> segment(uint64_t number) const;

  const EntropyKernels& kernels_;
  EntropyScan scan_;
  HuffmanCache tables_;
  std::span<const McuBlock> layout_;
  std::span<const uint8_t> bytes_;
  std::vector<size_t> starts_;  // of the segments, in bytes_; the end of the last one behind them
  uint64_t total_ = 0;          // MCUs of the image
  uint64_t interval_ = 0;       // MCUs of a segment
  uint64_t at_ = 0;             // the MCU that comes next
  uint64_t segment_ = 0;        // which holds it, unless it is the first of another
};

}  // namespace stoker

// A walk over the MCUs of a baseline scan, which jumps to restart markers where there are any, and else to
// the entry points that are known.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/jpeg/entry_points.h"
#include "core/jpeg/region/entropy_kernels.h"
#include "core/jpeg/region/frame_header.h"

namespace stoker {

class McuCursor {
 public:
  explicit McuCursor(const EntropyKernels& kernels) : kernels_(kernels) {}

  // Of the scan whose entropy-coded `data` follow. False where the frame's tables cannot be decoded with.
  // Throws kBadImage where restart markers are missing, out of turn, or have too little between them: no such
  // image can be decoded whole. `mcu` names the component of each block of an MCU. Entry points that are
  // stepped over are noted in `entries`.
  bool open(const FrameHeader& frame, std::span<const uint8_t> data, std::span<const McuBlock> mcu,
            EntryPoints entries = {});

  // Whether anything since open() depends on an entry point. If so, data that fail may still be intact.
  bool entered() const { return entered_; }

  // Instead of decode(): reads all MCUs and keeps nothing of them. False where any decode() would be.
  bool skip_all();

  // After a decode() or skip_all() that was true: whether the last MCU was read, and where the marker behind
  // it is, in bytes from the start of the scan.
  bool is_done() const { return at_ == total_; }
  size_t marker_at() const { return static_cast<size_t>(scan_.reader.marker() - bytes_.data()); }

  // Decodes the MCUs first .. first + count - 1 into the blocks of `mcu`, or, if `low`, only what is wanted
  // of them. Must not go back. False as the kernels.
  bool decode(uint64_t first, size_t count, std::span<const McuBlock> mcu, bool low);

 private:
  bool find_tables(const FrameHeader& frame);
  void find_segments(const FrameHeader& frame, size_t blocks);
  bool go_to(uint64_t mcu);
  bool skip_to(uint64_t mcu);
  bool pass_points(uint64_t mcu);
  bool enter_at(uint64_t number);
  bool agrees(uint64_t number);
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
  EntryPoints entries_;
  uint64_t step_ = 0;    // MCUs from one entry point to the next
  uint64_t passed_ = 0;  // entry points up to the MCU that comes next
  uint64_t points_ = 0;  // entry points of the image
  bool skips_ = false;   // its tables are built
  bool entered_ = false;
  bool compared_ = false;  // after that with another
};

}  // namespace stoker

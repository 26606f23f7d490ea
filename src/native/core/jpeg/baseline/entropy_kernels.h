// The entropy-coded blocks of a baseline scan: decoded, or stepped over (ITU-T T.81 annex F.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/jpeg/baseline/bit_reader.h"
#include "core/jpeg/baseline/huffman.h"

namespace stoker {

inline constexpr size_t kMostComponents = 3;
inline constexpr size_t kBlockValues = 64;

// Row-major places of the positions of a block, in zigzag order (ITU-T T.81 figure A.6).
inline constexpr uint8_t kZigzag[kBlockValues] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

// One block of every MCU: whose it is, and where those of a run of MCUs go.
struct McuBlock {
  size_t component = 0;
  int16_t* values = nullptr;  // of the first MCU, 64 of them in rows, all zero beforehand
  uint8_t* last = nullptr;    // the position in zigzag order of its last value that is stored
  size_t step = 0;            // blocks from one MCU of the run to the next
};

// Reads the MCUs of a scan one after another. Plain arrays: see core/base/kernels.h.
struct EntropyScan {
  const HuffmanDecoder* dc[kMostComponents] = {};
  HuffmanDecoder* ac[kMostComponents] = {};
  int32_t predictions[kMostComponents] = {};  // of the next DC values
  int32_t most[kMostComponents] = {};         // that a DC value, or its negative, may be
  BitReader reader;

  void restart(std::span<const uint8_t> bytes) {
    for (int32_t& prediction : predictions) prediction = 0;
    reader.start(bytes);
  }
};

// For one instruction set, on `count` MCUs of `blocks` blocks each, of which `mcu` holds the first one's. All
// return false for data that are not those of an image libjpeg decodes without a warning, or that are left to
// it.
struct EntropyKernels {
  const char* name;
  bool (*decode)(EntropyScan& scan, const McuBlock* mcu, size_t blocks, size_t count);
  // The DC values alone.
  bool (*decode_dc)(EntropyScan& scan, const McuBlock* mcu, size_t blocks, size_t count);
  bool (*skip)(EntropyScan& scan, const McuBlock* mcu, size_t blocks, size_t count);
};
// Those this processor can run, the fastest first; tests run one body over all of them.
const std::vector<const EntropyKernels*>& entropy_kernels();

}  // namespace stoker

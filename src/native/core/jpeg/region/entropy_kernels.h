// The entropy-coded blocks of a scan: decoded, or stepped over (ITU-T T.81 annex F.2, and G.2 for progressive
// images).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/jpeg/region/bit_reader.h"
#include "core/jpeg/region/huffman.h"

namespace stoker {

inline constexpr size_t kMostComponents = 3;
inline constexpr size_t kBlockValues = 64;

// Row-major indices of the positions of a block, in zigzag order (ITU-T T.81 figure A.6).
inline constexpr uint8_t kZigzag[kBlockValues] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

// One block of every MCU: whose it is, and where those of a run of MCUs go.
struct McuBlock {
  size_t component = 0;
  int16_t* values = nullptr;       // of the first MCU, 64 of them in rows, all zero beforehand
  uint8_t* last = nullptr;         // the position in zigzag order of its last value that is stored
  size_t step = 0;                 // blocks from one MCU of the run to the next
  uint8_t end = kBlockValues - 1;  // the position in zigzag order of the last value that is wanted
};

// Reads the MCUs of a scan one after another. Plain arrays: see core/base/kernels.h.
struct EntropyScan {
  const HuffmanDecoder* dc[kMostComponents] = {};
  HuffmanDecoder* ac[kMostComponents] = {};
  int32_t predictions[kMostComponents] = {};  // of the next DC values
  int32_t most[kMostComponents] = {};         // that a DC value, or its negative, may be
  bool wide_skips = false;                    // which of the windows of HuffmanDecoder::build_skips
  BitReader reader;

  void restart(std::span<const uint8_t> bytes) {
    for (int32_t& prediction : predictions) prediction = 0;
    reader.start(bytes);
  }
};

// A progressive scan. Its band of AC coefficients is of one component, whose decoder is ac[0]. In a scan that
// refines, only the coefficients that are known tell how many bits a block has: so they are marked for all
// blocks.
struct BandScan : EntropyScan {
  uint32_t first = 1, last = 63;  // positions, in zigzag order
  uint32_t low = 0;               // the bit of a coefficient that its last one is
  uint32_t ending = 0;            // blocks that come next and have no more than those before them

  void restart(std::span<const uint8_t> bytes) {
    ending = 0;
    EntropyScan::restart(bytes);
  }
};

// For one instruction set, on `count` MCUs of `blocks` blocks each, of which `mcu` holds the first one's. All
// return false for data that are not those of an image libjpeg decodes without a warning, or that are left to
// it.
struct EntropyKernels {
  const char* name;
  bool (*decode)(EntropyScan& scan, const McuBlock* mcu, size_t blocks, size_t count);
  // The values that are wanted of each block; what is stored of others may be anything.
  bool (*decode_low)(EntropyScan& scan, const McuBlock* mcu, size_t blocks, size_t count);
  bool (*skip)(EntropyScan& scan, const McuBlock* mcu, size_t blocks, size_t count);

  // Of progressive scans. A block without memory for its values is stepped over. `low` as in BandScan.
  bool (*first_dc)(EntropyScan& scan, const McuBlock* mcu, size_t blocks, size_t count, uint32_t low);
  bool (*refine_dc)(EntropyScan& scan, const McuBlock* mcu, size_t blocks, size_t count, uint32_t low);
  // `count` blocks of one component. `known` has a bit for each position of a block whose value is not zero.
  // `values` is null where they are stepped over.
  bool (*first_ac)(BandScan& scan, uint64_t* known, int16_t* values, size_t count);
  bool (*refine_ac)(BandScan& scan, uint64_t* known, int16_t* values, size_t count);
};
// Those this processor can run, the fastest first; tests run one body over all of them.
const std::vector<const EntropyKernels*>& entropy_kernels();

}  // namespace stoker

// The least entropy-coded data that an image of so many blocks can have: what a header claims is compared
// with the bytes that are there before memory is taken for it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/pixels.h"

namespace stoker {

enum class ScanCoding {
  kSequential,   // Huffman codes: a block has a code of DC and one that ends it, of a bit each at least
  kProgressive,  // the first scan of a component has DC alone; later ones can end 32,767 blocks with one code
  kArithmetic,   // nothing for certain: blocks like the one before cost next to nothing, and zeros at the
                 // end of the data are left out
};

// The blocks of a component that are 8 x 8 of its own pixels, by its sampling factors and the largest of the
// image.
uint64_t blocks_of(Extent image, int across, int down, int most_across, int most_down);

// Throws kBadImage where `bytes` of data cannot hold the `blocks` of the first scan of an image. No complete
// image is refused.
void refuse_missing_data(ScanCoding coding, Extent image, uint64_t blocks, size_t bytes);

}  // namespace stoker

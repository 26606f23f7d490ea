// The Huffman code that makes counted symbols shortest (ITU-T T.81 annex K.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/jpeg/region/huffman.h"

namespace stoker {

inline constexpr size_t kHuffmanSymbols = 256;

// `counts` says how often each symbol occurs; one at least does. The same code as libjpeg's.
HuffmanCode optimal_huffman(std::span<const uint32_t, kHuffmanSymbols> counts);

}  // namespace stoker

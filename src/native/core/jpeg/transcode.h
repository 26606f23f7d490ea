// Lossless transcode of a JPEG: the same coefficients as sequential baseline with optimised Huffman tables
// and restart markers, so that a reader can start in the middle of the picture.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/pixels.h"

namespace stoker {

// The file with the same coefficients, quantisation tables and colours: one interleaved sequential scan,
// optimised tables, restart markers for kLosslessTiles. What says how pixels are meant
// is copied unchanged and in order (JFIF, EXIF, ICC profile, Adobe); XMP, Photoshop's resources, other APPn
// and comments are left out.
//
// Sequential and progressive Huffman-coded files of 8 bits with up to four components. None is the answer for
// one that has no such form: sampling factors that do not fit into one scan.
//
// Throws kImageTooLarge before memory is taken for coefficients, and kBadImage for what JpegDecoder refuses.
std::optional<std::vector<uint8_t>> transcode_jpeg(std::span<const uint8_t> bytes,
                                                   uint64_t max_pixels = kDefaultMaxPixels);

}  // namespace stoker

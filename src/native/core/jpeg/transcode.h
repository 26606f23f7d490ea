// Lossless transcode of a JPEG: the same coefficients as sequential baseline with optimised Huffman tables
// and restart markers, so that a reader can start in the middle of the picture.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/jpeg/jpeg.h"

namespace stoker {

// Tiles across a picture. A lossless transcode takes as many as keep datasets from growing; an encoder can
// afford more. docs/decisions/restart-intervals.md has the figures.
inline constexpr uint32_t kLosslessTiles = 5;
inline constexpr uint32_t kEncodedTiles = 16;

// MCUs between two restart markers: about `mcus_per_row` / `tiles`, both at least 1.
//
// The largest number of tiles up to `tiles`, and not below three quarters of it, that divides the row gives
// tiles with straight columns. Where none does, `tiles` is taken and the interval rounded up: segments then
// straddle rows.
uint32_t restart_interval(uint32_t mcus_per_row, uint32_t tiles);

// MCUs in a row of pixels. `horizontal_sampling` is the largest of any component; 1 for a picture of one
// component, whose MCU is a single block whatever its header says.
uint32_t mcus_per_row(uint32_t width, int horizontal_sampling);

// Adds to an encoding the interval for kEncodedTiles.
void add_restart_markers(JpegEncodeSpec& spec, Extent size, int channels);

// The file with the same coefficients, quantisation tables and colours: one interleaved sequential scan,
// optimised tables, restart markers for kLosslessTiles. What says how pixels are meant
// is copied unchanged and in order (JFIF, EXIF, ICC profile, Adobe); XMP, Photoshop's resources, other APPn
// and comments are left out.
//
// Sequential and progressive Huffman-coded files of 8 bits with up to four components. None is the answer for
// one whose pixels would change, or that has no such form: a progressive file that ends before all its
// coefficients are exact (decoders smooth it), or sampling factors that do not fit into one scan.
//
// Throws kImageTooLarge before memory is taken for coefficients, and kBadImage for damage of any kind.
std::optional<std::vector<uint8_t>> transcode_jpeg(std::span<const uint8_t> bytes,
                                                   uint64_t max_pixels = kDefaultMaxPixels);

}  // namespace stoker

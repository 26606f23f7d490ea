// How often a JPEG has a restart marker, at which a reader can start in the middle of the picture.
#pragma once

#include <cstdint>

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

}  // namespace stoker

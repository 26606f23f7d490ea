// The codec alone: what a loader could reach if reading, parsing and batching cost nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/jpeg/decoder.h"
#include "core/transforms/transform.h"

namespace stoker {

// Decodes and resizes the same regions as BatchEngine would for `indices` (sample k is images[k]), on
// `threads` threads that share nothing but a counter; pixels go to a scratch slot of each thread. Returns
// when all are done. Throws the first error of a thread.
void run_decode_loop(std::span<const std::span<const uint8_t>> images, std::span<const uint64_t> indices,
                     const TransformSpec& transform, DecodeMode decode, PixelMode mode, uint64_t seed,
                     uint64_t epoch, size_t threads);

}  // namespace stoker

// What an audit knows of the pixels of one image: sums for mean and deviation, and a hash of what it shows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/pixels.h"
#include "core/images/image_decoder.h"

namespace stoker {

// The image is averaged to so many cells a side, each of the same area, before it is hashed.
inline constexpr size_t kHashGrid = 32;

// The bits of a hash that are the other way round in the hash of the mirrored image.
inline constexpr uint64_t kMirroredBits = 0xaaaaaaaaaaaaaaaa;

struct ImageMeasure {
  Extent size;
  std::array<uint64_t, 3> sums{};     // of red, green and blue
  std::array<uint64_t, 3> squares{};  // the sums of their squares
  // The signs of the lowest frequencies of a two-dimensional DCT-II of the grey cells: bit 8 v + u is set
  // where the coefficient (v, u), vertical and horizontal, is above 0; bit 0, the mean, stands for (0, 8)
  // instead.
  uint64_t hash = 0;
  // Which of these are strong: further from 0 than half of them. Cut edges turn the signs of weak ones.
  uint64_t strong = 0;
};

// Measures one image after another, all in integers, so that it is the same on every machine. One per thread;
// it keeps its scratch memory.
class ImageMeasurer {
 public:
  // Decodes a whole file of one of the formats of ImageDecoder, and throws what that does.
  ImageMeasure run(std::span<const uint8_t> file, uint64_t max_pixels);

  // The same of RGB pixels end to end.
  ImageMeasure run(const uint8_t* rgb, Extent size);

 private:
  void begin(Extent size);
  void add(const uint8_t* rgbx);
  void add_to_cells(std::span<const uint32_t> greys, size_t cell, uint64_t weight);
  ImageMeasure finish() const;

  ImageDecoder decoder_;
  ScratchBytes row_;
  ImageMeasure measured_;
  size_t rows_ = 0;                        // that were added
  std::vector<uint32_t> greys_, columns_;  // of the last row; sums of rows inside one row of cells
  size_t whole_rows_ = 0;                  // that `columns_` sums
  std::array<uint64_t, kHashGrid * kHashGrid> cells_{};  // sums of greys, weighted with 32 x 32 a whole pixel
};

}  // namespace stoker

#include "core/audit/image_measurer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numbers>

namespace stoker {
namespace {

// Compilers make of these what the processor has; a product of two bytes needs no more than 16 bits.
using Words = uint32_t __attribute__((vector_size(16)));
using Halves = uint16_t __attribute__((vector_size(16)));
constexpr size_t kLanes = sizeof(Words) / sizeof(uint32_t);

// Squares of bytes that a sum of 32 bits holds for certain.
constexpr size_t kPixelsAtOnce = size_t{1} << 16;

// 256 times grey, of at most 16 bits.
constexpr uint16_t kRed = 77, kGreen = 150, kBlue = 29;

Words product(Words a, Words b) {
  return reinterpret_cast<Words>(reinterpret_cast<Halves>(a) * reinterpret_cast<Halves>(b));
}

uint64_t total(Words sums) {
  uint64_t sum = 0;
  for (size_t lane = 0; lane < kLanes; ++lane) sum += sums[lane];
  return sum;
}

// Sums of a row of RGBX, and its greys.
void measure_row(const uint8_t* rgbx, size_t pixels, ImageMeasure& measure, uint32_t* greys) {
  for (size_t from = 0; from < pixels; from += kPixelsAtOnce) {
    const size_t end = std::min(pixels, from + kPixelsAtOnce);
    Words sums[3] = {}, squares[3] = {};
    size_t x = from;
    for (; x + kLanes <= end; x += kLanes) {
      Words pixel;
      std::memcpy(&pixel, rgbx + x * kRgbxBytes, sizeof pixel);
      const Words channels[3] = {pixel & 0xff, pixel >> 8 & 0xff, pixel >> 16 & 0xff};
      for (size_t c = 0; c < 3; ++c) {
        sums[c] += channels[c];
        squares[c] += product(channels[c], channels[c]);
      }
      const Words zero{};
      const Words grey = product(channels[0], zero + kRed) + product(channels[1], zero + kGreen) +
                         product(channels[2], zero + kBlue);
      std::memcpy(greys + x, &grey, sizeof grey);
    }
    for (size_t c = 0; c < 3; ++c) {
      measure.sums[c] += total(sums[c]);
      measure.squares[c] += total(squares[c]);
    }
    for (; x < end; ++x) {
      const uint8_t* const pixel = rgbx + x * kRgbxBytes;
      for (size_t c = 0; c < 3; ++c) {
        measure.sums[c] += pixel[c];
        measure.squares[c] += uint64_t{pixel[c]} * pixel[c];
      }
      greys[x] = uint32_t{kRed} * pixel[0] + uint32_t{kGreen} * pixel[1] + uint32_t{kBlue} * pixel[2];
    }
  }
}

constexpr size_t kSide = 8;  // of the frequencies that are hashed, and the frequency that follows them
using Waves = std::array<std::array<int64_t, kHashGrid>, kSide + 1>;

// The cosines of a DCT-II, times 2^14.
const Waves& waves() {
  static const Waves table = [] {
    Waves waves{};
    for (size_t u = 0; u < waves.size(); ++u) {
      for (size_t x = 0; x < kHashGrid; ++x) {
        const double angle = static_cast<double>((2 * x + 1) * u) * std::numbers::pi / (2.0 * kHashGrid);
        waves[u][x] = std::llround(std::cos(angle) * 16384.0);
      }
    }
    return waves;
  }();
  return table;
}

// Of cells below 2^20: all sums stay below 2^60.
void hash_cells(const std::array<int64_t, kHashGrid * kHashGrid>& cells, ImageMeasure& measure) {
  const Waves& wave = waves();
  std::array<std::array<int64_t, kHashGrid>, kSide + 1> across{};  // by horizontal frequency, then by row
  for (size_t u = 0; u <= kSide; ++u) {
    for (size_t y = 0; y < kHashGrid; ++y) {
      for (size_t x = 0; x < kHashGrid; ++x) across[u][y] += cells[y * kHashGrid + x] * wave[u][x];
    }
  }
  std::array<int64_t, kSide * kSide> sizes{};
  for (size_t bit = 0; bit < kSide * kSide; ++bit) {
    const size_t v = bit / kSide, u = bit == 0 ? kSide : bit % kSide;
    int64_t coefficient = 0;
    for (size_t y = 0; y < kHashGrid; ++y) coefficient += across[u][y] * wave[v][y];
    if (coefficient > 0) measure.hash |= uint64_t{1} << bit;
    sizes[bit] = std::abs(coefficient);
  }
  auto sorted = sizes;
  const auto middle = sorted.begin() + sorted.size() / 2 - 1;
  std::nth_element(sorted.begin(), middle, sorted.end());
  for (size_t bit = 0; bit < sizes.size(); ++bit) {
    if (sizes[bit] > *middle) measure.strong |= uint64_t{1} << bit;
  }
}

}  // namespace

ImageMeasure ImageMeasurer::run(std::span<const uint8_t> file, uint64_t max_pixels) {
  const Extent size = decoder_.open(file, max_pixels);
  decoder_.start({0, 0, size.width, size.height});
  begin(size);
  while (rows_ < static_cast<size_t>(size.height)) {
    const RgbxRows rows = decoder_.next();
    if (static_cast<size_t>(rows.first) != rows_) begin(size);  // they come once more, from the first one on
    for (int32_t y = 0; y < rows.pixels.size.height; ++y) add(rows.pixels.row(y));
  }
  return finish();
}

ImageMeasure ImageMeasurer::run(const uint8_t* rgb, Extent size) {
  begin(size);
  const auto width = static_cast<size_t>(size.width);
  uint8_t* const row = row_.take(width * kRgbxBytes);
  for (int32_t y = 0; y < size.height; ++y) {
    rgb_to_rgbx(rgb + static_cast<size_t>(y) * width * kRgbBytes, width, row);
    add(row);
  }
  return finish();
}

void ImageMeasurer::begin(Extent size) {
  measured_ = {size, {}, {}, 0, 0};
  rows_ = whole_rows_ = 0;
  cells_.fill(0);
  greys_.resize(static_cast<size_t>(size.width));
  columns_.assign(static_cast<size_t>(size.width), 0);
}

// A pixel is `kHashGrid` wide and high, and a cell as wide and high as the image has pixels.
void ImageMeasurer::add(const uint8_t* rgbx) {
  measure_row(rgbx, greys_.size(), measured_, greys_.data());
  const auto height = static_cast<uint64_t>(measured_.size.height);
  const uint64_t top = rows_ * kHashGrid, bottom = top + kHashGrid;
  ++rows_;
  const size_t cell = top / height;
  if (bottom <= (cell + 1) * height) {
    for (size_t x = 0; x < greys_.size(); ++x) columns_[x] += greys_[x];
    ++whole_rows_;
  }
  if (bottom < (cell + 1) * height) return;
  if (whole_rows_ > 0) add_to_cells(columns_, cell, kHashGrid);
  if (bottom > (cell + 1) * height) {  // the row is part of several
    for (size_t other = cell; other * height < bottom; ++other) {
      add_to_cells(greys_, other, std::min(bottom, (other + 1) * height) - std::max(top, other * height));
    }
  }
  std::fill(columns_.begin(), columns_.end(), 0);
  whole_rows_ = 0;
}

void ImageMeasurer::add_to_cells(std::span<const uint32_t> greys, size_t cell, uint64_t weight) {
  const uint64_t width = greys.size();
  for (size_t column = 0; column < kHashGrid; ++column) {
    const uint64_t left = column * width, right = left + width;
    const uint64_t first = left / kHashGrid, last = right / kHashGrid;
    uint64_t sum = 0;
    if (first == last) {
      sum = greys[first] * width;
    } else {
      for (uint64_t x = first + 1; x < last; ++x) sum += greys[x];
      sum = sum * kHashGrid + greys[first] * (kHashGrid - left % kHashGrid);
      if (right % kHashGrid != 0) sum += greys[last] * (right % kHashGrid);
    }
    cells_[cell * kHashGrid + column] += sum * weight;
  }
}

ImageMeasure ImageMeasurer::finish() const {
  constexpr uint64_t kScale = 16;  // 256 x 16 times a grey of 0 to 255: below 2^20
  const auto area =
      static_cast<uint64_t>(measured_.size.width) * static_cast<uint64_t>(measured_.size.height);
  std::array<int64_t, kHashGrid * kHashGrid> means{};
  for (size_t i = 0; i < cells_.size(); ++i) means[i] = static_cast<int64_t>(cells_[i] * kScale / area);
  ImageMeasure measure = measured_;
  hash_cells(means, measure);
  return measure;
}

}  // namespace stoker

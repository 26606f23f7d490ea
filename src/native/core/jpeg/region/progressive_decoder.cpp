#include "core/jpeg/region/progressive_decoder.h"

#include <algorithm>

#include "core/jpeg/libjpeg.h"
#include "core/jpeg/markers.h"

namespace stoker {
namespace {

constexpr uint32_t kMostLow = 13;  // of libjpeg
constexpr uint32_t kCoefficientBits = 15;
constexpr size_t kKeptScans = 16;  // their memory is, from image to image; few have more

// Whether a scan can hold coefficients that do not fit 16 bits once they are shifted.
bool has_huge_values(const HuffmanCode& code, uint32_t low) {
  size_t count = 0;
  for (const uint8_t n : code.counts) count += n;
  const auto end = code.symbols.begin() + static_cast<ptrdiff_t>(count);
  return std::any_of(code.symbols.begin(), end,
                     [low](uint8_t symbol) { return (symbol & 15U) + low > kCoefficientBits; });
}

}  // namespace

bool ProgressiveDecoder::open(const FrameReader& headers) {
  if (!headers.frame().progressive || !has_usual_chroma(headers.frame())) return false;
  headers_ = headers;
  return true;
}

bool ProgressiveDecoder::start(Rect region, int32_t shrink) {
  if (!read_headers()) return false;
  pixels_.lay_out(headers_.frame(), region, shrink);
  lay_out(pixels_.mcus());
  row_ = kept_.first_row;
  return true;
}

bool ProgressiveDecoder::check() {
  if (!read_headers()) return false;
  lay_out({});
  return read_to_end();
}

// Of all scans, which then stand at their begin.
bool ProgressiveDecoder::read_headers() {
  const FrameHeader& frame = headers_.frame();
  for (size_t i = 0; i < frame.components; ++i) {
    Component& part = components_[i];
    const int32_t across = frame.across_of(i), down = frame.down_of(i);
    const auto along = [](int32_t side, int32_t factor, int32_t most) {
      return static_cast<uint64_t>((int64_t{side} * factor + int64_t{most} * 8 - 1) / (int64_t{most} * 8));
    };
    part.blocks = {.columns = along(frame.size.width, across, frame.across),
                   .rows = along(frame.size.height, down, frame.down),
                   .across = static_cast<uint64_t>(across),
                   .down = static_cast<uint64_t>(down)};
    part.low.fill(-1);
  }
  tables_.start_image();
  if (scans_.size() > kKeptScans) scans_.resize(kKeptScans);
  scan_count_ = 0;
  do {
    if (scan_count_ == kMaxScans) return false;
    if (scan_count_ == scans_.size()) scans_.emplace_back();
    Scan& scan = scans_[scan_count_++];
    scan.header = headers_.scan();
    if (!advance(scan.header) || !find_tables(scan)) return false;
    const std::span<const uint8_t> bytes = headers_.bytes();
    auto code = static_cast<size_t>(scan.header.data.data() - bytes.data());
    do {
      code = next_marker_code(bytes, code);
      if (code == bytes.size()) return false;
    } while (is_restart(bytes[code]));
    scan.end = bytes.data() + code - 1;
    const uint32_t restart = headers_.frame().restart_interval;
    scan.grid = grid_of(scan.header);
    scan.interval = restart == 0 ? scan.units() : restart;
    scan.segment = scan.at = 0;
    scan.entropy.restart(scan.header.data);
    if (!headers_.next(code - 1)) return false;
  } while (!headers_.ended());
  return std::all_of(components_.begin(), components_.begin() + static_cast<ptrdiff_t>(frame.components),
                     [](const Component& part) {
                       return std::all_of(part.low.begin(), part.low.end(),
                                          [](int8_t low) { return low == 0; });
                     });
}

// Whether the scan has the next bits of each of its coefficients, and no bits twice.
bool ProgressiveDecoder::advance(const ScanHeader& header) {
  const bool is_dc = header.first == 0;
  if (is_dc ? header.last != 0 : header.components != 1) return false;
  if (header.first > header.last || header.last >= kBlockValues || header.low > kMostLow) return false;
  if (header.high != 0 && header.low + 1 != header.high) return false;
  for (size_t i = 0; i < header.components; ++i) {
    auto& low = components_[header.component[i]].low;
    if (!is_dc && low[0] < 0) return false;
    const int wanted = header.high == 0 ? -1 : static_cast<int>(header.high);
    for (uint32_t k = header.first; k <= header.last; ++k) {
      if (low[k] != wanted) return false;
      low[k] = static_cast<int8_t>(header.low);
    }
  }
  return true;
}

bool ProgressiveDecoder::find_tables(Scan& scan) {
  const FrameHeader& frame = headers_.frame();
  const ScanHeader& header = scan.header;
  if (header.first > 0) {
    const HuffmanCode& code = frame.ac[frame.component[header.component[0]].ac];
    scan.entropy.ac[0] = tables_.find(code, HuffmanClass::kProgressiveAc);
    scan.entropy.first = header.first;
    scan.entropy.last = header.last;
    scan.entropy.low = header.low;
    return scan.entropy.ac[0] != nullptr && (header.high != 0 || !has_huge_values(code, header.low));
  }
  for (size_t i = 0; i < header.components && header.high == 0; ++i) {
    const size_t component = header.component[i];
    scan.entropy.dc[component] = tables_.find(frame.dc[frame.component[component].dc], HuffmanClass::kDc);
    if (scan.entropy.dc[component] == nullptr) return false;
    // Whatever the bits below will be.
    scan.entropy.most[component] = (frame.most_dc(component) >> header.low) - 1;
  }
  return true;
}

ProgressiveDecoder::Grid ProgressiveDecoder::grid_of(const ScanHeader& header) const {
  if (header.components == 1) return components_[header.component[0]].blocks;
  const FrameHeader& frame = headers_.frame();
  return {.columns = static_cast<uint64_t>(frame.mcu_columns()),
          .rows = static_cast<uint64_t>(frame.mcu_rows())};
}

void ProgressiveDecoder::lay_out(const McuRect& kept) {
  const FrameHeader& frame = headers_.frame();
  kept_ = kept;
  band_first_ = band_end_ = 0;
  size_t blocks = 0, kept_blocks = 0;  // in a row of MCUs
  for (size_t i = 0; i < frame.components; ++i) {
    Component& part = components_[i];
    part.kept_columns = static_cast<size_t>(kept.columns()) * part.blocks.across;
    blocks += part.blocks.columns * part.blocks.down;
    kept_blocks += part.kept_columns * part.blocks.down;
  }
  const size_t row_bytes = blocks * sizeof(uint64_t) + kept_blocks * kBlockValues * sizeof(int16_t);
  const size_t rows = std::clamp<size_t>(kBandBytes / row_bytes, 1, static_cast<size_t>(frame.mcu_rows()));
  band_rows_ = static_cast<int32_t>(rows);
  known_.resize(blocks * rows);
  values_.assign(kept_blocks * kBlockValues * rows, 0);
  uint64_t* known = known_.data();
  int16_t* values = values_.data();
  for (size_t i = 0; i < frame.components; ++i) {
    Component& part = components_[i];
    part.known = known;
    part.values = values;
    known += part.blocks.columns * part.blocks.down * rows;
    values += part.kept_columns * part.blocks.down * rows * kBlockValues;
  }
}

bool ProgressiveDecoder::read_band() {
  band_first_ = band_end_;
  band_end_ = std::min(band_first_ + band_rows_, headers_.frame().mcu_rows());
  keeps_ = band_first_ >= kept_.first_row && band_first_ <= kept_.last_row;
  if (keeps_) band_end_ = std::min(band_end_, kept_.last_row + 1);
  if (band_first_ < kept_.first_row) band_end_ = std::min(band_end_, kept_.first_row);
  std::fill(known_.begin(), known_.end(), uint64_t{0});
  return std::all_of(scans_.begin(), scans_.begin() + static_cast<ptrdiff_t>(scan_count_),
                     [this](Scan& scan) { return read_rows(scan); });
}

bool ProgressiveDecoder::read_to_end() {
  while (band_end_ < headers_.frame().mcu_rows()) {
    if (!read_band()) return false;
  }
  return true;
}

// Those of the band.
bool ProgressiveDecoder::read_rows(Scan& scan) {
  const Grid& grid = scan.grid;
  const uint64_t end = std::min(static_cast<uint64_t>(band_end_) * grid.down, grid.rows) * grid.columns;
  const uint64_t first_column = static_cast<uint64_t>(kept_.first_column) * grid.across;
  const uint64_t end_column =
      std::min(static_cast<uint64_t>(kept_.last_column + 1) * grid.across, grid.columns);
  while (scan.at < end) {
    const uint64_t column = scan.at % grid.columns, row_begin = scan.at - column;
    const bool keep = keeps_ && column >= first_column && column < end_column;
    uint64_t next = end;  // where what is kept begins, or ends
    if (keep) {
      next = row_begin + end_column;
    } else if (keeps_) {
      next = row_begin + first_column + (column < first_column ? 0 : grid.columns);
    }
    const uint64_t count = std::min({next, end, scan.segment_end()}) - scan.at;
    if (!read_run(scan, count, keep)) return false;
    scan.at += count;
    if (scan.at == scan.segment_end() && !end_segment(scan)) return false;
  }
  return true;
}

// If data remain in a segment, or a marker is missing, libjpeg decodes the image.
bool ProgressiveDecoder::end_segment(Scan& scan) {
  BitReader& reader = scan.entropy.reader;
  if (scan.entropy.ending != 0 || !reader.at_end() || !reader.before_marker()) return false;
  const uint8_t* const marker = reader.marker();
  if (scan.at == scan.units()) return marker == scan.end;
  if (marker[1] != kRst0 + scan.segment % kRestartNumbers) return false;
  ++scan.segment;
  scan.entropy.restart(
      headers_.bytes().subspan(static_cast<size_t>(marker - headers_.bytes().data()) + kMarkerBytes));
  return true;
}

// Units that lie in one row where they are kept.
bool ProgressiveDecoder::read_run(Scan& scan, uint64_t count, bool keep) {
  if (scan.header.first == 0) return read_dc(scan, count, keep);
  const size_t component = scan.header.component[0];
  const Component& part = components_[component];
  const Grid& grid = scan.grid;
  const uint64_t block = scan.at - static_cast<uint64_t>(band_first_) * grid.down * grid.columns;
  int16_t* values = nullptr;
  if (keep && pixels_.side_of(component) > 1) {
    const uint64_t column = block % grid.columns - static_cast<uint64_t>(kept_.first_column) * grid.across;
    values = part.values + (block / grid.columns * part.kept_columns + column) * kBlockValues;
  }
  const auto read = scan.header.high == 0 ? kernels_.first_ac : kernels_.refine_ac;
  return read(scan.entropy, part.known + block, values, count);
}

bool ProgressiveDecoder::read_dc(Scan& scan, uint64_t count, bool keep) {
  const ScanHeader& header = scan.header;
  const Grid& grid = scan.grid;
  const uint64_t first_row = scan.at / grid.columns - static_cast<uint64_t>(band_first_) * grid.down;
  const uint64_t first_column =
      scan.at % grid.columns - static_cast<uint64_t>(kept_.first_column) * grid.across;
  std::array<McuBlock, 10> mcu;
  size_t blocks = 0;
  for (size_t i = 0; i < header.components; ++i) {
    const Component& part = components_[header.component[i]];
    const bool lone = header.components == 1;
    const size_t across = lone ? 1 : part.blocks.across, down = lone ? 1 : part.blocks.down;
    for (size_t y = 0; y < down; ++y) {
      for (size_t x = 0; x < across; ++x) {
        McuBlock& block = mcu[blocks++];
        block = {.component = header.component[i], .step = across};
        if (!keep) continue;
        const size_t row = first_row * down + y, column = first_column * across + x;
        block.values = part.values + (row * part.kept_columns + column) * kBlockValues;
      }
    }
  }
  const auto read = header.high == 0 ? kernels_.first_dc : kernels_.refine_dc;
  return read(scan.entropy, mcu.data(), blocks, count, header.low);
}

std::optional<int32_t> ProgressiveDecoder::next(uint8_t* out, size_t stride) {
  while (band_end_ <= row_) {
    if (!read_band()) return std::nullopt;
  }
  const FrameHeader& frame = headers_.frame();
  const auto row = static_cast<size_t>(row_ - band_first_);
  for (size_t i = 0; i < frame.components; ++i) {
    const Component& part = components_[i];
    const Grid& grid = part.blocks;
    const uint64_t* known = part.known + row * grid.down * grid.columns;
    const size_t first_column = static_cast<size_t>(kept_.first_column) * grid.across;
    last_.assign(part.kept_columns * grid.down, 0);
    for (size_t y = 0; y < grid.down; ++y, known += grid.columns) {
      uint8_t* last = last_.data() + y * part.kept_columns;
      const size_t count = std::min(part.kept_columns, grid.columns - first_column);
      for (size_t x = 0; x < count; ++x) last[x] = known[first_column + x] != 0;
    }
    pixels_.transform(i, part.values + row * grid.down * part.kept_columns * kBlockValues, last_.data());
  }
  if (row_ == kept_.last_row && !read_to_end()) return std::nullopt;
  return pixels_.write_rows(row_++, out, stride);
}

}  // namespace stoker

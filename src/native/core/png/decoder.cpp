#include "core/png/decoder.h"

#include <algorithm>
#include <optional>
#include <string>

#include "core/base/errors.h"
#include "core/base/scratch_bytes.h"
#include "core/png/libpng_reader.h"
#include "core/png/row_reader.h"
#include "core/png/samples.h"

namespace stoker {

struct PngDecoder::State {
  LibpngReader libpng;
  PngRowReader rows;
  bool is_open = false;
  bool is_alone = false;  // rows come from `rows`, not from libpng
  Rect region;
  int32_t done = 0;  // rows of the region that were given
  ScratchBytes pixels;

  size_t stride() const { return static_cast<size_t>(region.width) * kRgbxBytes; }
  void begin(const char* call);
  void start(Rect part);
  void start_libpng();
  RgbxRows read(int32_t most);
  RgbxRows next();
  void check();
  bool read_alone(int32_t count, uint8_t* to);
  void to_pixels(const uint8_t* row, uint8_t* to) const;
};

void PngDecoder::State::begin(const char* call) {
  if (!is_open) throw Error(ErrorCode::kBadArgument, std::string(call) + " needs an open() before it");
  is_open = false;
  is_alone = !libpng.is_interlaced();
  if (is_alone) rows.open(libpng.data_chunks(), libpng.size(), libpng.pixels().layout.bits());
}

void PngDecoder::State::start(Rect part) {
  begin("decode()");
  refuse_outside(part, libpng.size());
  region = part;
  done = 0;
  if (is_alone) {
    rows.start(part.y, part.y + part.height, part.x + part.width);
  } else {
    start_libpng();
  }
}

// From the first row on, whatever was given before.
void PngDecoder::State::start_libpng() {
  is_alone = false;
  done = 0;
  libpng.start(region.y, region.height);
}

void PngDecoder::State::to_pixels(const uint8_t* row, uint8_t* to) const {
  libpng.pixels().convert(row, static_cast<size_t>(region.x), static_cast<size_t>(region.width), to);
}

// False where the image is left to libpng.
bool PngDecoder::State::read_alone(int32_t count, uint8_t* to) {
  while (count > 0) {
    const std::optional<PngRows> more = rows.next();
    if (!more) return false;
    for (int32_t y = 0; y < more->count; ++y, to += stride())
      to_pixels(more->data + static_cast<size_t>(y) * more->stride, to);
    count -= more->count;
  }
  return true;
}

// The next rows, at most `most`, which is a multiple of those that are read together, or all.
RgbxRows PngDecoder::State::read(int32_t most) {
  uint8_t* const out =
      pixels.take(stride() * static_cast<size_t>(std::min(most, region.height)) + kRgbxPadding);
  int32_t count = std::min(most, region.height - done);
  if (is_alone && !read_alone(count, out)) {
    start_libpng();
    count = std::min(most, region.height);
  }
  if (!is_alone) {
    uint8_t* to = out;
    for (int32_t y = 0; y < count; ++y, to += stride()) to_pixels(libpng.next(), to);
  }
  const RgbxRows given{{out, stride(), {region.width, count}}, done};
  done += count;
  if (done == region.height) libpng.close();
  return given;
}

RgbxRows PngDecoder::State::next() {
  if (done == region.height) throw Error(ErrorCode::kBadArgument, "next() needs a start() before it");
  const int32_t together = std::max(kRowGroup, rows.rows_together());
  return read((static_cast<int32_t>(kBandBytes / stride()) / together + 1) * together);
}

void PngDecoder::State::check() {
  begin("check()");
  if (!is_alone || !rows.check()) libpng.check();
  libpng.close();
}

PngDecoder::PngDecoder() : state_(std::make_unique<State>()) {}

PngDecoder::~PngDecoder() = default;

Extent PngDecoder::open(std::span<const uint8_t> bytes, uint64_t max_pixels, PixelMode mode) {
  state_->is_open = false;
  state_->region = {};
  state_->done = 0;
  state_->libpng.open(bytes, max_pixels, mode);
  state_->is_open = true;
  return state_->libpng.size();
}

bool PngDecoder::is_deep() const {
  return state_->libpng.pixels().is_deep();
}

void PngDecoder::start(Rect region) {
  state_->start(region);
}

RgbxRows PngDecoder::next() {
  return state_->next();
}

RgbxView PngDecoder::decode(Rect region) {
  state_->start(region);
  return state_->read(region.height).pixels;
}

void PngDecoder::check() {
  state_->check();
}

bool has_png() {
  return true;
}

}  // namespace stoker

// Region decode: our own decoders decode baseline and progressive images; libjpeg-turbo's jpeg_crop_scanline
// and jpeg_skip_scanlines decode all others, and those that our decoders leave to it.
#include "core/jpeg/decoder.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/jpeg/entry_points.h"
#include "core/jpeg/header.h"
#include "core/jpeg/libjpeg.h"
#include "core/jpeg/region/baseline_decoder.h"
#include "core/jpeg/region/frame_header.h"
#include "core/jpeg/region/progressive_decoder.h"

namespace stoker {
namespace {

// Pillow's CMYK to RGB, on inks that Adobe stores inverted: 255 - value is the ink.
void cmyk_to_rgbx(uint8_t* row, size_t pixels) {
  for (size_t i = 0; i < pixels; ++i, row += kRgbxBytes) {
    const unsigned light = row[3];
    for (int c = 0; c < 3; ++c) {
      const unsigned product = (255u - row[c]) * light + 128u;
      row[c] = static_cast<uint8_t>(light - ((product + (product >> 8)) >> 8));
    }
  }
}

// True where jpeg_crop_scanline gives the pixels of a whole decode. Other samplings decode whole rows.
bool crops_exactly(const jpeg_decompress_struct& c) {
  for (int i = 0; i < c.num_components; ++i) {
    const jpeg_component_info& part = c.comp_info[i];
    const bool full = part.h_samp_factor == c.max_h_samp_factor;
    const bool half = 2 * part.h_samp_factor == c.max_h_samp_factor;
    if (!full && !half) return false;
  }
  return true;
}

}  // namespace

struct JpegDecoder::Libjpeg {
  jpeg_decompress_struct c;
  JpegErrors errors;
  ScanLimit limit;
  std::vector<uint8_t*> rows;

  Libjpeg();
  ~Libjpeg() { jpeg_destroy_decompress(&c); }
  Extent open(std::span<const uint8_t> bytes);
  void start(Rect region, int32_t shrink);
  // Of the region's next rows, in `pixels`.
  RgbxView read(int32_t count, ScratchBytes& pixels);
  void check(ScratchBytes& pixels);

 private:
  bool configure(int32_t shrink);
  void create();
  [[noreturn]] void fail();

  Rect region_;
  bool inks_ = false;
  JDIMENSION left_ = 0, span_ = 0;  // what libjpeg gives of each row
  ScratchBytes skipped_;            // a row above the region
};

JpegDecoder::Libjpeg::Libjpeg() {
  c.err = errors.install();
  create();
}

void JpegDecoder::Libjpeg::create() {
  if (setjmp(errors.escape) != 0) {
    jpeg_destroy_decompress(&c);
    throw_jpeg_error(errors);
  }
  jpeg_create_decompress(&c);
  limit.install(c);
}

void JpegDecoder::Libjpeg::fail() {
  jpeg_abort_decompress(&c);
  throw_jpeg_error(errors);
}

Extent JpegDecoder::Libjpeg::open(std::span<const uint8_t> bytes) {
  // libjpeg keeps the tables of the last image, for files that have none. No image may depend on another.
  jpeg_destroy_decompress(&c);
  create();
  if (setjmp(errors.escape) != 0) fail();
  jpeg_mem_src(&c, bytes.data(), static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&c, TRUE);
  return {static_cast<int32_t>(c.image_width), static_cast<int32_t>(c.image_height)};
}

// Whether the colours that come out are inks.
bool JpegDecoder::Libjpeg::configure(int32_t shrink) {
  const bool inks = c.jpeg_color_space == JCS_CMYK || c.jpeg_color_space == JCS_YCCK;
  c.out_color_space = inks ? JCS_CMYK : JCS_EXT_RGBX;
  c.dct_method = JDCT_ISLOW;
  c.scale_num = 1;
  c.scale_denom = static_cast<unsigned>(shrink);
  if (setjmp(errors.escape) != 0) fail();
  jpeg_calc_output_dimensions(&c);
  return inks;
}

// At an eighth of the size, decoding the entropy-coded data is nearly all of the work.
void JpegDecoder::Libjpeg::check(ScratchBytes& pixels) {
  configure(8);
  JSAMPROW row = pixels.take(size_t{c.output_width} * kRgbxBytes + kRgbxPadding);
  if (setjmp(errors.escape) != 0) fail();
  jpeg_start_decompress(&c);  // reads all scans, if there are several
  refuse_missing_scans(c);
  while (!jpeg_has_multiple_scans(&c) && c.output_scanline < c.output_height) {
    jpeg_read_scanlines(&c, &row, 1);
  }
  jpeg_abort_decompress(&c);
}

void JpegDecoder::Libjpeg::start(Rect region, int32_t shrink) {
  inks_ = configure(shrink);
  region_ = region;
  const auto width = static_cast<int32_t>(c.output_width);

  // Fancy upsampling looks one value of chroma to either side, so the cut is made two pixels further out.
  left_ = 0;
  span_ = c.output_width;
  if (region.width < width && shrink == 1 && crops_exactly(c)) {
    const int32_t margin = c.max_h_samp_factor > 1 ? 2 : 0;
    const int32_t x0 = std::max(0, region.x - margin);
    left_ = static_cast<JDIMENSION>(x0);
    span_ = static_cast<JDIMENSION>(std::min(width, region.x + region.width + margin) - x0);
  }
  // jpeg_crop_scanline moves the left edge outwards by less than one MCU (at most 4 x 8 pixels).
  uint8_t* row = skipped_.take((size_t{span_} + 32) * kRgbxBytes + kRgbxPadding);
  if (setjmp(errors.escape) != 0) fail();
  jpeg_start_decompress(&c);
  refuse_missing_scans(c);
  if (span_ < c.output_width) jpeg_crop_scanline(&c, &left_, &span_);
  if (shrink == 1) {
    if (region_.y > 0) jpeg_skip_scanlines(&c, static_cast<JDIMENSION>(region_.y));
  } else {  // libjpeg-turbo cannot skip rows of every shrunken layout
    while (c.output_scanline < static_cast<JDIMENSION>(region_.y)) jpeg_read_scanlines(&c, &row, 1);
  }
}

RgbxView JpegDecoder::Libjpeg::read(int32_t count, ScratchBytes& pixels) {
  const auto height = static_cast<JDIMENSION>(count);
  const size_t stride = (size_t{span_} + 32) * kRgbxBytes;
  if (rows.size() < height) rows.resize(height);
  rows[0] = pixels.take(stride * height + kRgbxPadding);
  for (JDIMENSION y = 1; y < height; ++y) rows[y] = rows[0] + y * stride;
  if (setjmp(errors.escape) != 0) fail();
  for (JDIMENSION y = 0; y < height;) y += jpeg_read_scanlines(&c, rows.data() + y, height - y);
  if (c.output_scanline == static_cast<JDIMENSION>(region_.y + region_.height)) jpeg_abort_decompress(&c);

  const size_t skip = (static_cast<size_t>(region_.x) - left_) * kRgbxBytes;
  if (inks_) {
    for (JDIMENSION y = 0; y < height; ++y) cmyk_to_rgbx(rows[y] + skip, static_cast<size_t>(region_.width));
  }
  return {rows[0] + skip, stride, {region_.width, count}};
}

int32_t shrink_for(Extent part, Extent out) {
  int32_t shrink = 8;
  while (shrink > 1 && (part.width / shrink < out.width || part.height / shrink < out.height)) shrink /= 2;
  return shrink;
}

JpegDecoder::JpegDecoder()
    : libjpeg_(std::make_unique<Libjpeg>()),
      headers_(std::make_unique<FrameReader>()),
      baseline_(std::make_unique<BaselineDecoder>()),
      progressive_(std::make_unique<ProgressiveDecoder>()) {}

JpegDecoder::~JpegDecoder() = default;

Extent JpegDecoder::open(std::span<const uint8_t> bytes, uint64_t max_pixels) {
  is_open_ = false;
  region_ = {};
  done_ = 0;
  if (bytes.empty()) throw Error(ErrorCode::kBadImage, "The image is empty (0 bytes)");
  bytes_ = bytes;
  const bool is_known = headers_->open(bytes);
  reader_ = is_known && baseline_->open(*headers_)      ? Reader::kBaseline
            : is_known && progressive_->open(*headers_) ? Reader::kProgressive
                                                        : Reader::kLibjpeg;
  if (reader_ == Reader::kLibjpeg) {
    const JpegInfo info = probe_jpeg(bytes);
    size_ = {info.width, info.height};
  } else {
    size_ = headers_->frame().size;
  }
  refuse_more_pixels(size_, max_pixels);
  if (reader_ == Reader::kBaseline) {
    baseline_->refuse_missing_data();
  } else {
    check_jpeg(bytes_);
  }
  if (reader_ == Reader::kLibjpeg) libjpeg_->open(bytes_);
  is_open_ = true;
  return size_;
}

void JpegDecoder::open_libjpeg() {
  check_jpeg(bytes_);
  libjpeg_->open(bytes_);
}

void JpegDecoder::check() {
  if (!is_open_) throw Error(ErrorCode::kBadArgument, "check() needs an open() before it");
  is_open_ = false;
  if (reader_ == Reader::kBaseline && baseline_->check()) return;
  if (reader_ == Reader::kProgressive && progressive_->check()) return;
  if (reader_ != Reader::kLibjpeg) open_libjpeg();
  libjpeg_->check(pixels_);
}

void JpegDecoder::start(Rect region, int32_t shrink, EntryPoints* entries) {
  if (!is_open_) throw Error(ErrorCode::kBadArgument, "decode() needs an open() before it");
  is_open_ = false;
  const Extent size{(size_.width + shrink - 1) / shrink, (size_.height + shrink - 1) / shrink};
  refuse_outside(region, size);
  region_ = region;
  shrink_ = shrink;
  entries_ = entries;
  done_ = given_ = held_ = 0;
  if (reader_ == Reader::kBaseline &&
      baseline_->start(region, shrink, entries == nullptr ? EntryPoints() : *entries)) {
    return;
  }
  if (reader_ == Reader::kProgressive && progressive_->start(region, shrink)) return;
  start_libjpeg();
}

// From the first row on, whatever was given before.
void JpegDecoder::start_libjpeg() {
  if (reader_ != Reader::kLibjpeg) open_libjpeg();
  reader_ = Reader::kLibjpeg;
  done_ = given_ = held_ = 0;
  libjpeg_->start(region_, shrink_);
}

// Adds to `rows` in `out` until they are enough. False where the image is left to libjpeg.
bool JpegDecoder::read_alone(uint8_t* out, int32_t& rows, int32_t enough) {
  while (rows < enough) {
    uint8_t* const to = out + static_cast<size_t>(rows) * stride();
    const std::optional<int32_t> more =
        reader_ == Reader::kBaseline ? baseline_->next(to, stride()) : progressive_->next(to, stride());
    if (!more) return false;
    rows += *more;
  }
  return true;
}

// After decoding that began in the middle of the image failed: whether it begins again from the start.
bool JpegDecoder::starts_over() {
  if (reader_ != Reader::kBaseline || !baseline_->entered()) return false;
  entries_->forget();
  done_ = given_ = held_ = 0;
  return baseline_->start(region_, shrink_);
}

RgbxRows JpegDecoder::next() {
  if (done_ == region_.height) throw Error(ErrorCode::kBadArgument, "next() needs a start() before it");
  const int32_t most = (static_cast<int32_t>(kBandBytes / stride()) / kRowGroup + 1) * kRowGroup;
  if (reader_ != Reader::kLibjpeg) {
    const int32_t more = reader_ == Reader::kBaseline ? baseline_->most_rows() : progressive_->most_rows();
    const auto room = static_cast<size_t>(std::min(most + more, region_.height));
    uint8_t* const band = pixels_.take(room * stride() + kPlanePadding * kRgbxBytes);
    std::memmove(band, band + static_cast<size_t>(given_) * stride(), static_cast<size_t>(held_) * stride());
    if (read_alone(band, held_, std::min(most, region_.height - done_))) {
      const bool is_last = done_ + held_ == region_.height;
      given_ = is_last ? held_ : held_ / kRowGroup * kRowGroup;
      held_ -= given_;
      const RgbxRows rows{{band, stride(), {region_.width, given_}}, done_};
      done_ += given_;
      return rows;
    }
    if (starts_over()) return next();
    start_libjpeg();
  }
  const int32_t count = std::min(most, region_.height - done_);
  const RgbxRows rows{libjpeg_->read(count, pixels_), done_};
  done_ += count;
  return rows;
}

RgbxView JpegDecoder::decode(Rect region, int32_t shrink) {
  start(region, shrink);
  if (reader_ != Reader::kLibjpeg) {
    const auto height = static_cast<size_t>(region.height);
    uint8_t* const out = pixels_.take(stride() * height + kPlanePadding * kRgbxBytes);
    if (read_alone(out, held_, region.height)) return {out, stride(), {region.width, region.height}};
    start_libjpeg();
  }
  return libjpeg_->read(region.height, pixels_);
}

}  // namespace stoker

// Region decode: baseline images by our own decoder, all others, and those it has doubts about, by
// libjpeg-turbo's jpeg_crop_scanline and jpeg_skip_scanlines.
#include "core/jpeg/decoder.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/jpeg/baseline/baseline_decoder.h"
#include "core/jpeg/header.h"
#include "core/jpeg/libjpeg.h"

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
  RgbxView decode(Rect region, int32_t shrink, ScratchBytes& pixels);
  void check(ScratchBytes& pixels);

 private:
  bool configure(int32_t shrink);
  void create();
  [[noreturn]] void fail();
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

// At an eighth of the size next to nothing is done but the decoding of the entropy-coded data.
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

RgbxView JpegDecoder::Libjpeg::decode(Rect region, int32_t shrink, ScratchBytes& pixels) {
  const bool inks = configure(shrink);
  const auto width = static_cast<int32_t>(c.output_width);

  // Fancy upsampling looks one value of chroma to either side, so the cut is made two pixels further out.
  JDIMENSION left = 0, span = c.output_width;
  if (region.width < width && shrink == 1 && crops_exactly(c)) {
    const int32_t margin = c.max_h_samp_factor > 1 ? 2 : 0;
    const int32_t x0 = std::max(0, region.x - margin);
    left = static_cast<JDIMENSION>(x0);
    span = static_cast<JDIMENSION>(std::min(width, region.x + region.width + margin) - x0);
  }
  const auto height = static_cast<JDIMENSION>(region.height);
  // jpeg_crop_scanline moves the left edge outwards by less than one MCU (at most 4 x 8 pixels).
  const size_t stride = (size_t{span} + 32) * kRgbxBytes;
  if (rows.size() < height) rows.resize(height);
  rows[0] = pixels.take(stride * height + kRgbxPadding);
  for (JDIMENSION y = 1; y < height; ++y) rows[y] = rows[0] + y * stride;

  if (setjmp(errors.escape) != 0) fail();
  jpeg_start_decompress(&c);
  refuse_missing_scans(c);
  if (span < c.output_width) jpeg_crop_scanline(&c, &left, &span);
  if (shrink == 1) {
    if (region.y > 0) jpeg_skip_scanlines(&c, static_cast<JDIMENSION>(region.y));
  } else {  // libjpeg-turbo cannot skip rows of every shrunken layout
    while (c.output_scanline < static_cast<JDIMENSION>(region.y)) jpeg_read_scanlines(&c, rows.data(), 1);
  }
  for (JDIMENSION y = 0; y < height;) y += jpeg_read_scanlines(&c, rows.data() + y, height - y);
  jpeg_abort_decompress(&c);

  const size_t skip = (static_cast<size_t>(region.x) - left) * kRgbxBytes;
  if (inks) {
    for (JDIMENSION y = 0; y < height; ++y) cmyk_to_rgbx(rows[y] + skip, static_cast<size_t>(region.width));
  }
  return {rows[0] + skip, stride, {region.width, region.height}};
}

int32_t shrink_for(Extent part, Extent out) {
  int32_t shrink = 8;
  while (shrink > 1 && (part.width / shrink < out.width || part.height / shrink < out.height)) shrink /= 2;
  return shrink;
}

JpegDecoder::JpegDecoder()
    : libjpeg_(std::make_unique<Libjpeg>()), baseline_(std::make_unique<BaselineDecoder>()) {}

JpegDecoder::~JpegDecoder() = default;

Extent JpegDecoder::open(std::span<const uint8_t> bytes, uint64_t max_pixels) {
  is_open_ = false;
  if (bytes.empty()) throw Error(ErrorCode::kBadImage, "The image is empty (0 bytes)");
  bytes_ = bytes;
  is_baseline_ = baseline_->open(bytes);
  if (is_baseline_) {
    size_ = baseline_->size();
  } else {
    const JpegInfo info = probe_jpeg(bytes);
    size_ = {info.width, info.height};
  }
  refuse_more_pixels(size_, max_pixels);
  if (is_baseline_) {
    baseline_->refuse_missing_data();
  } else {
    open_libjpeg();
  }
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
  if (is_baseline_) {
    if (baseline_->check()) return;
    open_libjpeg();
  }
  libjpeg_->check(pixels_);
}

RgbxView JpegDecoder::decode(Rect region, int32_t shrink) {
  if (!is_open_) throw Error(ErrorCode::kBadArgument, "decode() needs an open() before it");
  is_open_ = false;
  const Extent size{(size_.width + shrink - 1) / shrink, (size_.height + shrink - 1) / shrink};
  if (region.x < 0 || region.y < 0 || region.width <= 0 || region.height <= 0 ||
      region.width > size.width - region.x || region.height > size.height - region.y) {
    throw Error(ErrorCode::kBadArgument,
                "The box (" + std::to_string(region.x) + ", " + std::to_string(region.y) + ", " +
                    std::to_string(int64_t{region.x} + region.width) + ", " +
                    std::to_string(int64_t{region.y} + region.height) + ") is empty or leaves the image of " +
                    std::to_string(size.width) + " x " + std::to_string(size.height));
  }
  if (is_baseline_) {
    const size_t stride = static_cast<size_t>(region.width) * kRgbxBytes;
    const size_t bytes = stride * static_cast<size_t>(region.height) + kPlanePadding * kRgbxBytes;
    uint8_t* const out = pixels_.take(bytes);
    if (baseline_->decode(region, shrink, out, stride)) return {out, stride, {region.width, region.height}};
    open_libjpeg();
  }
  return libjpeg_->decode(region, shrink, pixels_);
}

}  // namespace stoker

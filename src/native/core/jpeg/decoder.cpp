// Region decode on libjpeg-turbo's jpeg_crop_scanline and jpeg_skip_scanlines.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/errors.h"
#include "core/jpeg/jpeg.h"
#include "core/jpeg/codec.h"

namespace stoker {
namespace {

// A progressive file may hold any number of scans, each a walk over all coefficients. Real ones have about
// ten.
constexpr int kMaxScans = 256;

struct Progress {
  jpeg_progress_mgr base;
  bool too_many_scans;
};

void watch_scans(j_common_ptr codec) {
  auto* decompress = reinterpret_cast<j_decompress_ptr>(codec);
  auto* progress = reinterpret_cast<Progress*>(codec->progress);
  if (decompress->input_scan_number <= kMaxScans) return;
  progress->too_many_scans = true;
  std::longjmp(reinterpret_cast<JpegErrors*>(codec->err)->escape, 1);
}

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

struct JpegDecoder::Codec {
  jpeg_decompress_struct c;
  JpegErrors errors;
  Progress progress;
  bool open = false;
};

JpegDecoder::JpegDecoder() : codec_(std::make_unique<Codec>()) {
  Codec& codec = *codec_;
  codec.c.err = codec.errors.install();
  if (setjmp(codec.errors.escape) != 0) throw_jpeg_error(codec.errors);
  jpeg_create_decompress(&codec.c);
  codec.progress.base.progress_monitor = watch_scans;
  codec.progress.too_many_scans = false;
  codec.c.progress = &codec.progress.base;
}

JpegDecoder::~JpegDecoder() {
  jpeg_destroy_decompress(&codec_->c);
}

Extent JpegDecoder::open(std::span<const uint8_t> bytes, uint64_t max_pixels) {
  if (bytes.empty()) throw Error(ErrorCode::kBadImage, "The image is empty (0 bytes)");
  Codec& codec = *codec_;
  jpeg_decompress_struct& c = codec.c;
  jpeg_abort_decompress(&c);
  codec.open = false;
  size_bytes_ = bytes.size();
  if (setjmp(codec.errors.escape) != 0) {
    jpeg_abort_decompress(&c);
    throw_jpeg_error(codec.errors);
  }
  jpeg_mem_src(&c, bytes.data(), static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&c, TRUE);
  const uint64_t pixels = uint64_t{c.image_width} * c.image_height;
  if (pixels > max_pixels) {
    throw Error(ErrorCode::kImageTooLarge, "The image declares " + std::to_string(c.image_width) + " x " +
                                               std::to_string(c.image_height) + " pixels; the limit is " +
                                               std::to_string(max_pixels) +
                                               " (raise max_pixels to accept it)");
  }
  codec.open = true;
  return {static_cast<int32_t>(c.image_width), static_cast<int32_t>(c.image_height)};
}

RgbxView JpegDecoder::decode(Rect region) {
  Codec& codec = *codec_;
  jpeg_decompress_struct& c = codec.c;
  const auto width = static_cast<int32_t>(c.image_width), height = static_cast<int32_t>(c.image_height);
  if (!codec.open) throw Error(ErrorCode::kBadArgument, "decode() needs an open() before it");
  codec.open = false;
  if (region.x < 0 || region.y < 0 || region.width <= 0 || region.height <= 0 ||
      region.width > width - region.x || region.height > height - region.y) {
    throw Error(ErrorCode::kBadArgument,
                "The box (" + std::to_string(region.x) + ", " + std::to_string(region.y) + ", " +
                    std::to_string(int64_t{region.x} + region.width) + ", " +
                    std::to_string(int64_t{region.y} + region.height) + ") is empty or leaves the image of " +
                    std::to_string(width) + " x " + std::to_string(height));
  }
  const bool inks = c.jpeg_color_space == JCS_CMYK || c.jpeg_color_space == JCS_YCCK;
  c.out_color_space = inks ? JCS_CMYK : JCS_EXT_RGBX;
  c.dct_method = JDCT_ISLOW;

  // Fancy upsampling looks one chroma sample to either side, so the cut is made two pixels further out.
  JDIMENSION left = 0, span = c.image_width;
  if (region.width < width && crops_exactly(c)) {
    const int32_t margin = c.max_h_samp_factor > 1 ? 2 : 0;
    const int32_t x0 = std::max(0, region.x - margin);
    left = static_cast<JDIMENSION>(x0);
    span = static_cast<JDIMENSION>(std::min(width, region.x + region.width + margin) - x0);
  }
  const auto rows = static_cast<JDIMENSION>(region.height);
  // jpeg_crop_scanline moves the left edge outwards by less than one MCU (at most 4 x 8 pixels).
  const size_t stride = (size_t{span} + 32) * kRgbxBytes;
  if (pixels_.size() < stride * rows + kRgbxPadding) pixels_.resize(stride * rows + kRgbxPadding);
  if (rows_.size() < rows) rows_.resize(rows);
  for (JDIMENSION y = 0; y < rows; ++y) rows_[y] = pixels_.data() + y * stride;

  if (setjmp(codec.errors.escape) != 0) {
    jpeg_abort_decompress(&c);
    if (codec.progress.too_many_scans) {
      codec.progress.too_many_scans = false;
      throw Error(ErrorCode::kBadImage, "The JPEG has more than " + std::to_string(kMaxScans) + " scans");
    }
    throw_jpeg_error(codec.errors);
  }
  jpeg_start_decompress(&c);
  if (span < c.image_width) jpeg_crop_scanline(&c, &left, &span);
  if (region.y > 0) jpeg_skip_scanlines(&c, static_cast<JDIMENSION>(region.y));
  for (JDIMENSION done = 0; done < rows;) done += jpeg_read_scanlines(&c, rows_.data() + done, rows - done);
  jpeg_abort_decompress(&c);

  const size_t skip = (static_cast<size_t>(region.x) - left) * kRgbxBytes;
  if (inks) {
    for (JDIMENSION y = 0; y < rows; ++y) cmyk_to_rgbx(rows_[y] + skip, static_cast<size_t>(region.width));
  }
  return {pixels_.data() + skip, stride, {region.width, region.height}};
}

}  // namespace stoker

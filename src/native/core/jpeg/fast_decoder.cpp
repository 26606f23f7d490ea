#include "core/jpeg/fast_decoder.h"

#include "core/errors.h"
#include "core/jpeg/codec.h"
#include "core/jpeg/scan_limit.h"

namespace stoker {
namespace {

unsigned eighths_for(const jpeg_decompress_struct& c, Extent least) {
  const auto reaches = [](JDIMENSION side, unsigned eighths, int32_t wanted) {
    return (uint64_t{side} * eighths + 7) / 8 >= static_cast<uint64_t>(wanted);
  };
  unsigned eighths = 8;
  while (eighths > 1 && reaches(c.image_width, eighths / 2, least.width) &&
         reaches(c.image_height, eighths / 2, least.height)) {
    eighths /= 2;
  }
  return eighths;
}

}  // namespace

struct FastJpegDecoder::Codec {
  jpeg_decompress_struct c{};
  JpegErrors errors{};
  ScanLimit scans;
};

FastJpegDecoder::FastJpegDecoder() : codec_(std::make_unique<Codec>()) {
  codec_->c.err = codec_->errors.install();
  if (setjmp(codec_->errors.escape) != 0) throw_jpeg_error(codec_->errors);
  jpeg_create_decompress(&codec_->c);
  codec_->scans.install(codec_->c);
}

FastJpegDecoder::~FastJpegDecoder() {
  jpeg_destroy_decompress(&codec_->c);
}

RgbxView FastJpegDecoder::decode(std::span<const uint8_t> bytes, Extent least, uint64_t max_pixels) {
  if (bytes.empty()) throw Error(ErrorCode::kBadImage, "The image is empty (0 bytes)");
  jpeg_decompress_struct& c = codec_->c;
  jpeg_abort_decompress(&c);
  if (setjmp(codec_->errors.escape) != 0) {
    jpeg_abort_decompress(&c);
    throw_jpeg_error(codec_->errors);
  }
  jpeg_mem_src(&c, bytes.data(), static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&c, TRUE);
  refuse_more_pixels({static_cast<int32_t>(c.image_width), static_cast<int32_t>(c.image_height)}, max_pixels);
  if (c.jpeg_color_space == JCS_CMYK || c.jpeg_color_space == JCS_YCCK) {
    throw Error(ErrorCode::kBadArgument, "The fast decode gives no RGB of inks; use the exact one");
  }
  c.out_color_space = JCS_EXT_RGBX;
  c.dct_method = JDCT_IFAST;
  c.do_fancy_upsampling = FALSE;
  c.scale_num = eighths_for(c, least);
  c.scale_denom = 8;
  jpeg_start_decompress(&c);
  const size_t stride = size_t{c.output_width} * kRgbxBytes;
  const JDIMENSION rows = c.output_height;
  if (pixels_.size() < stride * rows + kRgbxPadding) pixels_.resize(stride * rows + kRgbxPadding);
  if (rows_.size() < rows) rows_.resize(rows);
  for (JDIMENSION y = 0; y < rows; ++y) rows_[y] = pixels_.data() + y * stride;
  while (c.output_scanline < rows) {
    jpeg_read_scanlines(&c, rows_.data() + c.output_scanline, rows - c.output_scanline);
  }
  const Extent size{static_cast<int32_t>(c.output_width), static_cast<int32_t>(rows)};
  jpeg_finish_decompress(&c);
  return {pixels_.data(), stride, size};
}

}  // namespace stoker

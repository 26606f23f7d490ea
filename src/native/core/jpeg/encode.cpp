// Baseline JPEG.
#include "core/jpeg/encode.h"

#include <utility>

#include "core/base/errors.h"
#include "core/jpeg/libjpeg.h"
#include "core/jpeg/restart_interval.h"

namespace stoker {
namespace {

struct Encoder {
  jpeg_compress_struct c;
  JpegErrors errors;
  JpegOutput output;

  ~Encoder() { jpeg_destroy_compress(&c); }
};

uint32_t interval_of(const JpegEncodeSpec& spec, Extent size, int channels) {
  if (spec.restart_tiles == 0) return spec.restart_interval;
  const int sampling = channels == 1 ? 1 : spec.horizontal_sampling;
  return restart_interval(mcus_per_row(static_cast<uint32_t>(size.width), sampling), spec.restart_tiles);
}

void configure(jpeg_compress_struct& c, Extent size, int channels, const JpegEncodeSpec& spec) {
  c.image_width = static_cast<JDIMENSION>(size.width);
  c.image_height = static_cast<JDIMENSION>(size.height);
  c.input_components = channels;
  c.in_color_space = channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&c);
  jpeg_set_quality(&c, spec.quality, TRUE);
  c.optimize_coding = spec.optimize ? TRUE : FALSE;
  c.restart_interval = interval_of(spec, size, channels);
  if (channels == 3) {
    c.comp_info[0].h_samp_factor = spec.horizontal_sampling;
    c.comp_info[0].v_samp_factor = spec.vertical_sampling;
  }
}

}  // namespace

void refuse_no_jpeg(Extent size) {
  if (size.width > 0 && size.height > 0 && size.width <= kMostJpegSide && size.height <= kMostJpegSide)
    return;
  throw Error(ErrorCode::kBadArgument, "A JPEG cannot be " + std::to_string(size.width) + " x " +
                                           std::to_string(size.height) + " pixels; each side must be 1.." +
                                           std::to_string(kMostJpegSide));
}

std::vector<uint8_t> encode_jpeg(const uint8_t* pixels, Extent size, int channels,
                                 const JpegEncodeSpec& spec) {
  if (spec.quality < 1 || spec.quality > 100) {
    throw Error(ErrorCode::kBadArgument,
                "JPEG quality " + std::to_string(spec.quality) + " is not in 1..100");
  }
  refuse_no_jpeg(size);
  if (spec.restart_interval > 65535) {
    throw Error(ErrorCode::kBadArgument, "A restart interval of " + std::to_string(spec.restart_interval) +
                                             " MCUs; a JPEG can hold 65535 at most");
  }
  Encoder encoder{};
  jpeg_compress_struct& c = encoder.c;
  c.err = encoder.errors.install();
  if (setjmp(encoder.errors.escape) != 0) throw_jpeg_error(encoder.errors);
  jpeg_create_compress(&c);
  encoder.output.install(c);
  configure(c, size, channels, spec);
  jpeg_start_compress(&c, TRUE);
  const size_t stride = static_cast<size_t>(size.width) * static_cast<size_t>(channels);
  while (c.next_scanline < c.image_height) {
    // libjpeg's row type is not const, but it only reads.
    JSAMPROW row = const_cast<uint8_t*>(pixels) + c.next_scanline * stride;
    jpeg_write_scanlines(&c, &row, 1);
  }
  jpeg_finish_compress(&c);
  return std::move(encoder.output.bytes);
}

}  // namespace stoker

// Whole images through stock libjpeg, with settings that the core's own encoder does not have.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <vector>
// jpeglib.h needs size_t and FILE declared before it.
#include <jpeglib.h>

#include "core/jpeg/libjpeg.h"

namespace stoker::tests {

struct ReferenceSpec {
  int quality = 90;
  int across = 1, down = 1;  // luma samples over chroma
  int restart_interval = 0;  // MCUs
  bool optimised = false;
  bool progressive = false;
  bool arithmetic = false;
  bool scan_by_scan = false;                // one scan for each of three components
  int stops_before = 0;                     // leave out that many of the last scans
  std::vector<jpeg_scan_info> script = {};  // instead of the usual scans of a progressive image
};

inline std::vector<uint8_t> reference_jpeg(const std::vector<uint8_t>& pixels, Extent size, int channels,
                                           const ReferenceSpec& spec) {
  jpeg_compress_struct c;
  JpegErrors errors;
  c.err = errors.install();
  unsigned char* bytes = nullptr;
  unsigned long length = 0;
  if (setjmp(errors.escape) != 0) std::abort();
  jpeg_create_compress(&c);
  jpeg_mem_dest(&c, &bytes, &length);
  c.image_width = static_cast<JDIMENSION>(size.width);
  c.image_height = static_cast<JDIMENSION>(size.height);
  c.input_components = channels;
  c.in_color_space = channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&c);
  jpeg_set_quality(&c, spec.quality, TRUE);
  c.comp_info[0].h_samp_factor = spec.across;
  c.comp_info[0].v_samp_factor = spec.down;
  c.restart_interval = static_cast<unsigned>(spec.restart_interval);
  c.optimize_coding = spec.optimised ? TRUE : FALSE;
  c.arith_code = spec.arithmetic ? TRUE : FALSE;
  const jpeg_scan_info each[3] = {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
  if (spec.progressive) jpeg_simple_progression(&c);
  if (!spec.script.empty()) {
    c.scan_info = spec.script.data();
    c.num_scans = static_cast<int>(spec.script.size());
  }
  if (spec.scan_by_scan) c.scan_info = each, c.num_scans = 3;
  c.num_scans -= spec.stops_before;
  jpeg_start_compress(&c, TRUE);
  while (c.next_scanline < c.image_height) {
    const size_t row = c.next_scanline * static_cast<size_t>(size.width) * static_cast<size_t>(channels);
    JSAMPROW from = const_cast<uint8_t*>(pixels.data()) + row;
    jpeg_write_scanlines(&c, &from, 1);
  }
  jpeg_finish_compress(&c);
  std::vector<uint8_t> file(bytes, bytes + length);
  jpeg_destroy_compress(&c);
  std::free(bytes);
  return file;
}

// RGB without gaps, by the accurate DCT; empty where libjpeg reports an error or lost pixels.
inline std::vector<uint8_t> reference_pixels(const std::vector<uint8_t>& file) {
  jpeg_decompress_struct c;
  JpegErrors errors;
  c.err = errors.install();
  auto* pixels = new std::vector<uint8_t>;
  if (setjmp(errors.escape) != 0) {
    jpeg_destroy_decompress(&c);
    delete pixels;
    return {};
  }
  jpeg_create_decompress(&c);
  jpeg_mem_src(&c, file.data(), static_cast<unsigned long>(file.size()));
  jpeg_read_header(&c, TRUE);
  c.out_color_space = JCS_RGB;
  c.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&c);
  pixels->resize(size_t{c.output_width} * c.output_height * kRgbBytes);
  while (c.output_scanline < c.output_height) {
    JSAMPROW to = pixels->data() + size_t{c.output_scanline} * c.output_width * kRgbBytes;
    jpeg_read_scanlines(&c, &to, 1);
  }
  jpeg_finish_decompress(&c);
  jpeg_destroy_decompress(&c);
  std::vector<uint8_t> result = std::move(*pixels);
  delete pixels;
  return result;
}

}  // namespace stoker::tests

// Baseline JPEG.
#include "core/jpeg/encode.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/base/errors.h"
#include "core/jpeg/entropy_encoder.h"
#include "core/jpeg/libjpeg.h"
#include "core/jpeg/markers.h"
#include "core/jpeg/region/entropy_kernels.h"
#include "core/jpeg/restart_interval.h"

namespace stoker {
namespace {

// More go through libjpeg: EntropyEncoder takes memory for every symbol.
constexpr int64_t kMostOwnPixels = int64_t{1} << 21;

// The arrays of coefficients that a compressor makes, which is its client_data.
struct Coefficients {
  jvirt_barray_ptr (*request)(j_common_ptr, int, boolean, JDIMENSION, JDIMENSION, JDIMENSION) = nullptr;
  std::array<jvirt_barray_ptr, EntropyEncoder::kMostComponents> of_components{};
  size_t count = 0;
};

struct Encoder {
  jpeg_compress_struct c;
  JpegErrors errors;
  JpegOutput output;
  Coefficients coefficients;
  EntropyEncoder entropy;

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

jvirt_barray_ptr remember(j_common_ptr info, int pool, boolean zero, JDIMENSION columns, JDIMENSION rows,
                          JDIMENSION at_once) {
  auto& coefficients = *static_cast<Coefficients*>(info->client_data);
  jvirt_barray_ptr array = coefficients.request(info, pool, zero, columns, rows, at_once);
  if (coefficients.count < coefficients.of_components.size()) {
    coefficients.of_components[coefficients.count++] = array;
  }
  return array;
}

// Has libjpeg transform all of the image and keep the coefficients, as for a progressive one, of which it
// then encodes no more than one scan of a component's DC values.
void keep_coefficients(Encoder& encoder) {
  static constexpr jpeg_scan_info kColorScans[] = {
      {1, {2}, 0, 0, 0, 0}, {1, {1}, 0, 0, 0, 0}, {1, {0}, 0, 0, 0, 0}};
  static constexpr jpeg_scan_info kGreyScans[] = {{1, {0}, 0, 0, 0, 1}, {1, {0}, 0, 0, 1, 0}};
  jpeg_compress_struct& c = encoder.c;
  const std::span<const jpeg_scan_info> scans =
      c.num_components == 1 ? std::span<const jpeg_scan_info>(kGreyScans) : kColorScans;
  c.scan_info = scans.data();
  c.num_scans = static_cast<int>(scans.size());
  c.client_data = &encoder.coefficients;
  encoder.coefficients.request = std::exchange(c.mem->request_virt_barray, remember);
}

void write_rows(jpeg_compress_struct& c, const uint8_t* pixels, size_t stride) {
  constexpr JDIMENSION kAtOnce = 16;
  while (c.next_scanline < c.image_height) {
    const JDIMENSION count = std::min(kAtOnce, c.image_height - c.next_scanline);
    JSAMPROW rows[kAtOnce];
    // libjpeg's row type is not const, but it only reads.
    for (JDIMENSION i = 0; i < count; ++i)
      rows[i] = const_cast<uint8_t*>(pixels) + (c.next_scanline + i) * stride;
    jpeg_write_scanlines(&c, rows, count);
  }
}

// Adds the blocks in the order of an interleaved scan.
void add_blocks(Encoder& encoder, uint32_t restart_interval) {
  jpeg_compress_struct& c = encoder.c;
  const auto components = static_cast<size_t>(c.num_components);
  const auto across = static_cast<JDIMENSION>(c.max_h_samp_factor * DCTSIZE);
  const auto down = static_cast<JDIMENSION>(c.max_v_samp_factor * DCTSIZE);
  const JDIMENSION columns = (c.image_width + across - 1) / across, rows = (c.image_height + down - 1) / down;
  size_t in_mcu = 0;
  for (size_t i = 0; i < components; ++i) {
    in_mcu += static_cast<size_t>(c.comp_info[i].h_samp_factor * c.comp_info[i].v_samp_factor);
  }
  encoder.entropy.start(components, size_t{columns} * rows * in_mcu);
  uint32_t to_restart = restart_interval;
  for (JDIMENSION row = 0; row < rows; ++row) {
    JBLOCKARRAY blocks[EntropyEncoder::kMostComponents];
    for (size_t i = 0; i < components; ++i) {
      const auto high = static_cast<JDIMENSION>(c.comp_info[i].v_samp_factor);
      blocks[i] = c.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&c),
                                            encoder.coefficients.of_components[i], row * high, high, FALSE);
    }
    for (JDIMENSION column = 0; column < columns; ++column) {
      if (restart_interval != 0 && to_restart-- == 0) {
        encoder.entropy.restart();
        to_restart = restart_interval - 1;
      }
      for (size_t i = 0; i < components; ++i) {
        const auto wide = static_cast<JDIMENSION>(c.comp_info[i].h_samp_factor);
        for (int y = 0; y < c.comp_info[i].v_samp_factor; ++y) {
          for (JDIMENSION x = 0; x < wide; ++x) encoder.entropy.add(blocks[i][y][column * wide + x], i);
        }
      }
    }
  }
}

void put_u16(std::vector<uint8_t>& to, size_t value) {
  to.push_back(static_cast<uint8_t>(value >> 8));
  to.push_back(static_cast<uint8_t>(value));
}

void put_segment(std::vector<uint8_t>& to, uint8_t marker, std::span<const uint8_t> body) {
  to.insert(to.end(), {0xFF, marker});
  put_u16(to, body.size() + 2);
  to.insert(to.end(), body.begin(), body.end());
}

void put_huffman_table(std::vector<uint8_t>& to, uint8_t number, const HuffmanCode& code) {
  std::vector<uint8_t> body{number};
  size_t symbols = 0;
  for (const uint8_t count : code.counts) symbols += count;
  body.insert(body.end(), code.counts.begin(), code.counts.end());
  body.insert(body.end(), code.symbols.begin(), code.symbols.begin() + static_cast<std::ptrdiff_t>(symbols));
  put_segment(to, kDht, body);
}

// What libjpeg writes between its first segments and the data of a baseline scan, and in the same order.
void put_segments(std::vector<uint8_t>& to, const jpeg_compress_struct& c, const EntropyEncoder& entropy,
                  uint32_t restart_interval) {
  constexpr uint8_t kAcTable = 0x10;
  for (uint8_t number = 0; number < entropy.sets(); ++number) {
    std::vector<uint8_t> body{number};
    for (const uint8_t position : kZigzag) {
      body.push_back(static_cast<uint8_t>(c.quant_tbl_ptrs[number]->quantval[position]));
    }
    put_segment(to, kDqt, body);
  }
  const std::span<const jpeg_component_info> components(c.comp_info, static_cast<size_t>(c.num_components));
  std::vector<uint8_t> frame{8};  // bits of a sample
  put_u16(frame, c.image_height);
  put_u16(frame, c.image_width);
  frame.push_back(static_cast<uint8_t>(components.size()));
  std::vector<uint8_t> scan{static_cast<uint8_t>(components.size())};
  for (const jpeg_component_info& component : components) {
    const auto id = static_cast<uint8_t>(component.component_id);
    const auto sampling = static_cast<uint8_t>(component.h_samp_factor << 4 | component.v_samp_factor);
    frame.insert(frame.end(), {id, sampling, static_cast<uint8_t>(component.quant_tbl_no)});
    scan.insert(scan.end(), {id, static_cast<uint8_t>(component.dc_tbl_no << 4 | component.ac_tbl_no)});
  }
  scan.insert(scan.end(), {0, kBlockValues - 1, 0});
  put_segment(to, kSof0, frame);
  for (uint8_t number = 0; number < entropy.sets(); ++number) {
    put_huffman_table(to, number, entropy.tables(number).dc);
    put_huffman_table(to, kAcTable | number, entropy.tables(number).ac);
  }
  if (restart_interval != 0) {
    std::vector<uint8_t> body;
    put_u16(body, restart_interval);
    put_segment(to, kDri, body);
  }
  put_segment(to, kSos, scan);
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
  const bool own = spec.optimize && int64_t{size.width} * size.height <= kMostOwnPixels;
  const uint32_t interval = c.restart_interval;
  if (own) {
    c.restart_interval = 0;  // of the scan that libjpeg encodes
    keep_coefficients(encoder);
  }
  jpeg_start_compress(&c, TRUE);
  write_rows(c, pixels, static_cast<size_t>(size.width) * static_cast<size_t>(channels));
  if (!own) {
    jpeg_finish_compress(&c);
    return std::move(encoder.output.bytes);
  }
  add_blocks(encoder, interval);
  encoder.entropy.make_tables();
  std::vector<uint8_t> bytes = std::move(encoder.output.bytes);
  bytes.resize(bytes.size() - encoder.output.base.free_in_buffer);
  put_segments(bytes, c, encoder.entropy, interval);
  encoder.entropy.write(bytes);
  bytes.insert(bytes.end(), {0xFF, kEoi});
  return bytes;
}

}  // namespace stoker

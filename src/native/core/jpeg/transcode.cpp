// Over libjpeg's jpeg_read_coefficients and jpeg_write_coefficients.
#include "core/jpeg/transcode.h"

#include <string>
#include <string_view>

#include "core/base/errors.h"
#include "core/base/exif.h"
#include "core/base/pixels.h"
#include "core/jpeg/header.h"
#include "core/jpeg/libjpeg.h"
#include "core/jpeg/restart_interval.h"

namespace stoker {
namespace {

struct Metadata {
  uint8_t marker;
  std::span<const uint8_t> body;
};

bool is_xmp_that_turns(std::span<const uint8_t> body) {
  return begins_with(body, kXmpSegment) && orientation_in({}, body) != 1;
}

// Whether a segment says something about how the pixels are meant. Other XMP, Photoshop's resources, previews
// and comments do not.
bool is_kept(const Metadata& segment) {
  const auto body = segment.body;
  switch (segment.marker) {
    case kApp0:
      return begins_with(body, {"JFIF\0", 5});
    case kApp1:
      return begins_with(body, {"Exif\0", 5}) || is_xmp_that_turns(body);
    case kApp2:
      return begins_with(body, {"ICC_PROFILE\0", 12});
    case kApp14:
      return begins_with(body, "Adobe");
    default:
      return false;
  }
}

// The kept segments before the first scan of a file that check_jpeg has found whole.
std::vector<Metadata> metadata_of(std::span<const uint8_t> bytes) {
  std::vector<Metadata> kept;
  MarkerWalk walk(bytes);
  while (walk.next() && walk.marker() != kSos) {
    const Metadata segment{walk.marker(), walk.body()};
    if (is_kept(segment)) kept.push_back(segment);
  }
  return kept;
}

// Both halves of libjpeg, and the bytes that they make.
struct Transcoder {
  jpeg_decompress_struct in{};
  jpeg_compress_struct out{};
  JpegErrors errors{};
  ScanLimit scans;
  JpegOutput output;

  ~Transcoder() {
    jpeg_destroy_compress(&out);  // first: it reads the arrays of `in`
    jpeg_destroy_decompress(&in);
  }
};

bool fits_one_scan(const jpeg_decompress_struct& c) {
  if (c.num_components > MAX_COMPS_IN_SCAN) return false;
  if (c.num_components == 1) return true;
  int blocks = 0;
  for (int i = 0; i < c.num_components; ++i) {
    blocks += c.comp_info[i].h_samp_factor * c.comp_info[i].v_samp_factor;
  }
  return blocks <= C_MAX_BLOCKS_IN_MCU;
}

// libjpeg must not write JFIF and Adobe segments itself: those of the source are copied.
void configure(Transcoder& t) {
  jpeg_copy_critical_parameters(&t.in, &t.out);
  t.out.optimize_coding = TRUE;
  t.out.write_JFIF_header = FALSE;
  t.out.write_Adobe_marker = FALSE;
  const int sampling = t.in.num_components == 1 ? 1 : t.in.max_h_samp_factor;
  t.out.restart_interval = restart_interval(mcus_per_row(t.in.image_width, sampling), kLosslessTiles);
}

// No object with a destructor may be made here: errors leave by longjmp.
bool run(Transcoder& t, std::span<const uint8_t> bytes, const std::vector<Metadata>& metadata) {
  jpeg_create_decompress(&t.in);
  jpeg_create_compress(&t.out);
  t.scans.install(t.in);
  jpeg_mem_src(&t.in, bytes.data(), static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&t.in, TRUE);
  if (!fits_one_scan(t.in)) return false;
  jvirt_barray_ptr* coefficients = jpeg_read_coefficients(&t.in);
  refuse_missing_scans(t.in);
  t.output.install(t.out);
  configure(t);
  jpeg_write_coefficients(&t.out, coefficients);
  for (const Metadata& segment : metadata) {
    jpeg_write_marker(&t.out, segment.marker, segment.body.data(),
                      static_cast<unsigned>(segment.body.size()));
  }
  jpeg_finish_compress(&t.out);
  return true;
}

}  // namespace

std::optional<std::vector<uint8_t>> transcode_jpeg(std::span<const uint8_t> bytes, uint64_t max_pixels) {
  const JpegInfo info = probe_jpeg(bytes);
  refuse_more_pixels({info.width, info.height}, max_pixels);
  check_jpeg(bytes);
  const std::vector<Metadata> metadata = metadata_of(bytes);
  Transcoder transcoder;
  transcoder.in.err = transcoder.out.err = transcoder.errors.install();
  if (setjmp(transcoder.errors.escape) != 0) throw_jpeg_error(transcoder.errors);
  if (!run(transcoder, bytes, metadata)) return std::nullopt;
  return std::move(transcoder.output.bytes);
}

}  // namespace stoker

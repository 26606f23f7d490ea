#include "core/jpeg/libjpeg.h"

#include <jerror.h>

#include <new>

#include "core/base/errors.h"

namespace stoker {
namespace {

JpegErrors& errors_of(j_common_ptr info) {
  return *reinterpret_cast<JpegErrors*>(info->err);
}

void leave(j_common_ptr info) {
  JpegErrors& errors = errors_of(info);
  info->err->format_message(info, errors.message);
  std::longjmp(errors.escape, 1);
}

// All warnings of libjpeg-turbo up to 3.1. Harmless are those after which every pixel is what the file says,
// whichever part of it is decoded; all others mean lost or invented pixels.
bool is_harmless(int code) {
  switch (code) {
    case JWRN_ADOBE_XFORM:      // unknown code of a colour transform: the usual one is taken
    case JWRN_BOGUS_ICC:        // colour profiles are not used
    case JWRN_EXTRANEOUS_DATA:  // stray bytes before a marker, which nothing refers to
    case JWRN_JFIF_MAJOR:       // a newer version number of JFIF, whose pixels mean the same
    case JWRN_NOT_SEQUENTIAL:   // a sequential scan has all coefficients, whatever its header says of a band
      return true;
    case JWRN_ARITH_BAD_CODE:     // damage: the rest of the scan is left out
    case JWRN_BOGUS_PROGRESSION:  // bits are missing, or come twice: a scan was lost
    case JWRN_HIT_MARKER:         // data end early: zeros are made up
    case JWRN_HUFF_BAD_CODE:      // damage: a zero is made up
    case JWRN_JPEG_EOF:           // the file is cut short: an end is made up
    case JWRN_MUST_RESYNC:        // a restart marker is lost: blocks are made up, or left out
    case JWRN_TOO_MUCH_DATA:      // never the file's fault: more rows were asked for than there are
    default:                      // of a newer libjpeg
      return false;
  }
}

void on_message(j_common_ptr info, int level) {
  if (level < 0 && !is_harmless(info->err->msg_code)) leave(info);
}

void print_nothing(j_common_ptr) {}

void watch(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  JpegErrors& errors = errors_of(info);
  std::snprintf(errors.message, sizeof errors.message, "it has more than %d scans", kMaxScans);
  std::longjmp(errors.escape, 1);
}

constexpr size_t kFirstOutputBytes = size_t{64} << 10;

JpegOutput& output_of(j_compress_ptr info) {
  return *reinterpret_cast<JpegOutput*>(info->dest);
}

void write_to_end(JpegOutput& output, size_t from) {
  output.base.next_output_byte = output.bytes.data() + from;
  output.base.free_in_buffer = output.bytes.size() - from;
}

// Whether there is memory for twice as much.
bool grow(JpegOutput& output) {
  const size_t written = output.bytes.size();
  try {
    output.bytes.resize(2 * written);
  } catch (const std::bad_alloc&) {  // which may not pass through libjpeg
    return false;
  }
  write_to_end(output, written);
  return true;
}

boolean on_full(j_compress_ptr info) {
  if (grow(output_of(info))) return TRUE;
  info->err->msg_code = JERR_OUT_OF_MEMORY;
  leave(reinterpret_cast<j_common_ptr>(info));
  return FALSE;
}

void on_begin(j_compress_ptr) {}

void on_end(j_compress_ptr info) {
  JpegOutput& output = output_of(info);
  output.bytes.resize(output.bytes.size() - output.base.free_in_buffer);
}

}  // namespace

jpeg_error_mgr* JpegErrors::install() {
  jpeg_std_error(&base);
  base.error_exit = leave;
  base.emit_message = on_message;
  base.output_message = print_nothing;
  message[0] = '\0';
  return &base;
}

void throw_jpeg_error(const JpegErrors& errors) {
  if (errors.base.msg_code == JERR_OUT_OF_MEMORY) throw std::bad_alloc();
  throw Error(ErrorCode::kBadImage, std::string("The JPEG cannot be decoded whole: ") + errors.message);
}

void refuse_missing_scans(jpeg_decompress_struct& c) {
  JpegErrors& errors = errors_of(reinterpret_cast<j_common_ptr>(&c));
  constexpr const char* kRemedy = "; fetch the file again, or let jpegtran fill it up with zeros";
  for (int i = 0; i < c.num_components; ++i) {
    if (c.comp_info[i].quant_table == nullptr) {  // it is set by the first scan of a component
      std::snprintf(errors.message, sizeof errors.message,
                    "scans are missing: none holds component %d of %d%s", i + 1, c.num_components, kRemedy);
      std::longjmp(errors.escape, 1);
    }
    if (c.coef_bits == nullptr) continue;  // each scan of a sequential file holds its components whole
    const int* bits = c.coef_bits[i];      // how many are missing of each coefficient; -1: all
    int first = 0, last = DCTSIZE2 - 1;
    while (first < DCTSIZE2 && bits[first] == 0) ++first;
    if (first == DCTSIZE2) continue;
    while (bits[last] == 0) --last;
    std::snprintf(errors.message, sizeof errors.message,
                  "scans are missing: component %d of %d lacks %s of coefficients %d to %d%s", i + 1,
                  c.num_components, bits[first] < 0 ? "all bits" : "the last bits", first, last, kRemedy);
    std::longjmp(errors.escape, 1);
  }
}

void JpegOutput::install(jpeg_compress_struct& c) {
  bytes.resize(kFirstOutputBytes);
  write_to_end(*this, 0);
  base.init_destination = on_begin;
  base.empty_output_buffer = on_full;
  base.term_destination = on_end;
  c.dest = &base;
}

void ScanLimit::install(jpeg_decompress_struct& c) {
  base_.progress_monitor = watch;
  c.progress = &base_;
}

}  // namespace stoker

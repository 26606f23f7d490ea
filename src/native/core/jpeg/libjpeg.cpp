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

// Warnings after which every pixel is still what the file says. All others mean lost or invented pixels.
bool is_harmless(int code) {
  switch (code) {
    case JWRN_ADOBE_XFORM:      // unknown colour transform code; the usual one is assumed
    case JWRN_BOGUS_ICC:        // colour profiles are not used
    case JWRN_EXTRANEOUS_DATA:  // stray bytes before a marker
    case JWRN_JFIF_MAJOR:       // a newer JFIF version number
    case JWRN_TOO_MUCH_DATA:
      return true;
    default:
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

void ScanLimit::install(jpeg_decompress_struct& c) {
  base_.progress_monitor = watch;
  c.progress = &base_;
}

}  // namespace stoker

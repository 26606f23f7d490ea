#include "core/jpeg/libjpeg.h"

#include <jerror.h>

#include <new>

#include "core/base/errors.h"

namespace stoker {
namespace {

JpegErrors& errors_of(j_common_ptr codec) {
  return *reinterpret_cast<JpegErrors*>(codec->err);
}

void leave(j_common_ptr codec) {
  JpegErrors& errors = errors_of(codec);
  codec->err->format_message(codec, errors.message);
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

void on_message(j_common_ptr codec, int level) {
  if (level < 0 && !is_harmless(codec->err->msg_code)) leave(codec);
}

void print_nothing(j_common_ptr) {}

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

}  // namespace stoker

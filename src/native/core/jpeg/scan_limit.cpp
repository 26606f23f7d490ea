#include "core/jpeg/scan_limit.h"

namespace stoker {
namespace {

void watch(j_common_ptr codec) {
  if (reinterpret_cast<j_decompress_ptr>(codec)->input_scan_number <= kMaxScans) return;
  auto& errors = *reinterpret_cast<JpegErrors*>(codec->err);
  std::snprintf(errors.message, sizeof errors.message, "it has more than %d scans", kMaxScans);
  std::longjmp(errors.escape, 1);
}

}  // namespace

void ScanLimit::install(jpeg_decompress_struct& c) {
  base_.progress_monitor = watch;
  c.progress = &base_;
}

}  // namespace stoker

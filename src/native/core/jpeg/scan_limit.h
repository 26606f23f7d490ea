// A bound on the scans of one file: each is a walk over all coefficients, and a file may hold any number of
// them.
#pragma once

#include "core/jpeg/libjpeg.h"

namespace stoker {

// Real progressive files have about ten.
inline constexpr int kMaxScans = 256;

// Hangs itself into a decompressor; more scans leave as a JpegErrors of that decompressor.
class ScanLimit {
 public:
  void install(jpeg_decompress_struct& c);

 private:
  jpeg_progress_mgr base_{};
};

}  // namespace stoker

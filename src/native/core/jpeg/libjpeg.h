// How the core talks to libjpeg: its errors, the warnings that mean lost pixels, and files of too many scans
// leave through one jump.
#pragma once

#include <csetjmp>
#include <cstdio>
// jpeglib.h needs size_t and FILE declared before it.
#include <jpeglib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stoker {

// libjpeg's own memory manager frees everything on jpeg_abort/jpeg_destroy, so jumping over its frames is
// safe; code between install() and the last libjpeg call must hold no object with a destructor.
struct JpegErrors {
  jpeg_error_mgr base;  // first: libjpeg hands back a pointer to it
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX];

  // Fills in the callbacks and returns what goes into cinfo.err.
  jpeg_error_mgr* install();
};

// The message of the last error, as a core Error of code kBadImage; std::bad_alloc where libjpeg had no
// memory, which is not a fault of the image.
[[noreturn]] void throw_jpeg_error(const JpegErrors& errors);

// Leaves as a JpegErrors of `c`, which has read all scans, if these do not hold every bit of every
// coefficient. libjpeg would guess what is missing from the blocks around (block smoothing, which depends on
// its version, and on the region that is decoded): docs/decisions/incomplete-progressive.md.
void refuse_missing_scans(jpeg_decompress_struct& c);

// Memory that a compressor writes to. After an error, such as no memory, libjpeg's own jpeg_mem_dest does not
// say what it has allocated and freed, so its caller might free memory twice.
struct JpegOutput {
  jpeg_destination_mgr base;   // first: libjpeg hands back a pointer to it
  std::vector<uint8_t> bytes;  // the JPEG, once the compressor has finished

  void install(jpeg_compress_struct& c);
};

// Real progressive files have about ten.
inline constexpr int kMaxScans = 256;

// Limits the scans that a decompressor reads: each is a walk over all coefficients, and a file may hold any
// number of them. More leave as a JpegErrors of that decompressor.
class ScanLimit {
 public:
  void install(jpeg_decompress_struct& c);

 private:
  jpeg_progress_mgr base_{};
};

}  // namespace stoker

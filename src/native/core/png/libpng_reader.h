// PNG by libpng: the header of every file, and the rows of those that are left to it.
#pragma once

#include <png.h>

#include <csetjmp>
#include <cstdint>
#include <span>

#include "core/base/pixels.h"
#include "core/base/scratch_bytes.h"
#include "core/png/samples.h"

namespace stoker {

// Reads one image after another, with scratch memory that is kept. Throws kBadImage for damage.
//
// libpng leaves through `escape_` on an error, over frames of C alone: between setjmp and the last call of
// libpng there is no object with a destructor.
class LibpngReader {
 public:
  LibpngReader() = default;
  ~LibpngReader() { close(); }
  LibpngReader(const LibpngReader&) = delete;
  LibpngReader& operator=(const LibpngReader&) = delete;

  // Reads what comes before the compressed data. `bytes` must live until the last row was read.
  // For kRgba, a transparency that libpng refuses is kBadImage, and for kI16 a palette.
  void open(std::span<const uint8_t> bytes, uint64_t max_pixels, PixelMode mode);

  // Of the opened image, also after close().
  Extent size() const { return size_; }
  const PngPixels& pixels() const { return pixels_; }
  bool is_interlaced() const { return is_interlaced_; }
  // From the first data chunk on.
  std::span<const uint8_t> data_chunks() const { return data_chunks_; }

  // Begins to read `count` rows from `first` on, once per open().
  void start(int32_t first, int32_t count);
  // The next row, as the file has it. It lives until the one after it is asked for.
  const uint8_t* next();

  // Instead of both: reads all rows.
  void check();

  // Gives back the memory of libpng, which nothing more will be asked of.
  void close();

 private:
  void read_header();
  void refuse_missing_data(size_t bytes) const;
  void refuse_palette() const;
  void fill_colors();
  void find_alpha();
  size_t row_bytes() const { return (static_cast<size_t>(size_.width) * pixels_.layout.bits() + 7) / 8; }
  void skip_rows(int32_t count);
  void read_passes(int32_t first, int32_t count, uint8_t* kept);
  [[noreturn]] void fail();

  [[noreturn]] void leave(const char* what);
  static LibpngReader& of(void* pointer) { return *static_cast<LibpngReader*>(pointer); }
  static void on_error(png_structp png, png_const_charp what);
  static void on_warning(png_structp png, png_const_charp what);
  static void on_read(png_structp png, png_bytep to, size_t size);
  static png_voidp on_allocate(png_structp png, png_alloc_size_t size);
  static void on_free(png_structp png, png_voidp memory);

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf escape_;
  char message_[256] = "";
  bool no_memory_ = false;
  bool wrong_sum_ = false;  // of the pixels, at the end of the compressed data
  bool wrong_alpha_ = false;
  std::span<const uint8_t> left_;

  Extent size_;
  PngPixels pixels_;
  bool is_interlaced_ = false;
  std::span<const uint8_t> data_chunks_;
  ScratchBytes rows_;             // one, or of an interlaced image all that are asked for
  const uint8_t* row_ = nullptr;  // the next of an interlaced image
};

}  // namespace stoker

#include "core/png/libpng_reader.h"

#include <cstdio>
#include <cstring>
#include <new>
#include <string>

#include "core/base/errors.h"
#include "core/png/chunks.h"

namespace stoker {
namespace {

// How libpng reads the file: the larger, the fewer calls.
constexpr size_t kReadBytes = size_t{64} << 10;

SampleLayout layout_of(int color, unsigned bits) {
  switch (color) {
    case PNG_COLOR_TYPE_GRAY:
      return {bits == 16 ? Samples::kGrey : Samples::kIndex, bits};
    case PNG_COLOR_TYPE_PALETTE:
      return {Samples::kIndex, bits};
    case PNG_COLOR_TYPE_GRAY_ALPHA:
      return {Samples::kGreyAlpha, bits};
    case PNG_COLOR_TYPE_RGB:
      return {Samples::kRgb, bits};
    default:
      return {Samples::kRgba, bits};
  }
}

}  // namespace

void LibpngReader::leave(const char* what) {
  std::snprintf(message_, sizeof message_, "%s", what);
  std::longjmp(escape_, 1);
}

void LibpngReader::on_error(png_structp png, png_const_charp what) {
  of(png_get_error_ptr(png)).leave(what);
}

// libpng's warnings change no pixel, except for a wrong checksum over all pixels; and no alpha, except that
// libpng ignores a transparency that it does not understand.
void LibpngReader::on_warning(png_structp png, png_const_charp what) {
  LibpngReader& self = of(png_get_error_ptr(png));
  const bool alpha = std::strncmp(what, "tRNS:", 5) == 0;
  if (!alpha && std::strstr(what, "incorrect data check") == nullptr) return;
  (alpha ? self.wrong_alpha_ : self.wrong_sum_) = true;
  std::snprintf(self.message_, sizeof self.message_, "%s", what);
}

void LibpngReader::on_read(png_structp png, png_bytep to, size_t size) {
  LibpngReader& self = of(png_get_io_ptr(png));
  if (size > self.left_.size()) self.leave("the file is cut short");
  std::memcpy(to, self.left_.data(), size);
  self.left_ = self.left_.subspan(size);
}

png_voidp LibpngReader::on_allocate(png_structp png, png_alloc_size_t size) {
  void* const memory = ::operator new(size, std::nothrow);
  if (memory == nullptr) of(png_get_mem_ptr(png)).no_memory_ = true;
  return memory;
}

void LibpngReader::on_free(png_structp, png_voidp memory) {
  ::operator delete(memory);
}

void LibpngReader::close() {
  if (png_ != nullptr) png_destroy_read_struct(&png_, &info_, nullptr);
}

void LibpngReader::fail() {
  close();
  if (no_memory_) throw std::bad_alloc();
  throw Error(ErrorCode::kBadImage, std::string("The PNG cannot be decoded whole: ") + message_);
}

void LibpngReader::open(std::span<const uint8_t> bytes, uint64_t max_pixels, PixelMode mode) {
  close();
  left_ = bytes;
  no_memory_ = wrong_sum_ = wrong_alpha_ = false;
  pixels_.mode = mode;
  pixels_.clear.reset();
  read_header();
  // libpng has read the length and the type of the first data chunk.
  data_chunks_ = bytes.last(left_.size() + kChunkHead);
  refuse_more_pixels(size_, max_pixels);
  refuse_missing_data(bytes.size());
  if (mode == PixelMode::kI16) refuse_palette();
  if (pixels_.layout.samples == Samples::kIndex) fill_colors();
  if (mode == PixelMode::kRgba) find_alpha();
}

void LibpngReader::read_header() {
  if (setjmp(escape_) != 0) fail();
  png_ =
      png_create_read_struct_2(PNG_LIBPNG_VER_STRING, this, on_error, on_warning, this, on_allocate, on_free);
  if (png_ != nullptr) info_ = png_create_info_struct(png_);
  if (info_ == nullptr) leave("libpng could not be set up");
  png_set_read_fn(png_, this, on_read);
  // Sizes are limited by max_pixels and by the bytes that are there.
  png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_chunk_malloc_max(png_, 0);
  png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);  // nor any that is not needed
  // Some writers claim a smaller window than they use; zlib itself, and so Pillow, does not mind.
  png_set_option(png_, PNG_MAXIMUM_INFLATE_WINDOW, PNG_OPTION_ON);
  png_set_compression_buffer_size(png_, kReadBytes);
  // As Pillow: all chunks before the compressed data must have the right checksum; those data contain their
  // own.
  png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png_read_info(png_, info_);
  png_set_crc_action(png_, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
  size_ = {static_cast<int32_t>(png_get_image_width(png_, info_)),
           static_cast<int32_t>(png_get_image_height(png_, info_))};
  pixels_.layout = layout_of(png_get_color_type(png_, info_), png_get_bit_depth(png_, info_));
  is_interlaced_ = png_get_interlace_type(png_, info_) != PNG_INTERLACE_NONE;
}

void LibpngReader::refuse_missing_data(size_t bytes) const {
  const uint64_t raw =
      static_cast<uint64_t>(size_.width) * static_cast<uint64_t>(size_.height) * pixels_.layout.bits() / 8;
  const uint64_t least = raw / kMostInflation;
  if (bytes >= least) return;
  throw Error(ErrorCode::kBadImage, "The PNG is cut short: its header claims " + std::to_string(size_.width) +
                                        " x " + std::to_string(size_.height) +
                                        " pixels, which take at least " + std::to_string(least) +
                                        " bytes, and the file has " + std::to_string(bytes));
}

void LibpngReader::refuse_palette() const {
  if (png_get_color_type(png_, info_) != PNG_COLOR_TYPE_PALETTE) return;
  throw Error(
      ErrorCode::kBadImage,
      "The PNG has a palette, which neither Pillow nor Stoker turns into mode I;16: choose mode RGB, L "
      "or RGBA");
}

// What a byte of kIndex stands for. Entries that a palette lacks are black.
void LibpngReader::fill_colors() {
  pixels_.colors.fill({0, 0, 0, 0xff});
  png_colorp palette = nullptr;
  int entries = 0;
  if (png_get_color_type(png_, info_) == PNG_COLOR_TYPE_PALETTE) {
    png_get_PLTE(png_, info_, &palette, &entries);
    for (int i = 0; i < entries; ++i) {
      pixels_.colors[static_cast<size_t>(i)] = {palette[i].red, palette[i].green, palette[i].blue, 0xff};
    }
    return;
  }
  const unsigned most = (1u << pixels_.layout.sample_bits) - 1;
  for (unsigned value = 0; value <= most; ++value)
    write_grey(static_cast<uint8_t>(value * (255 / most)), pixels_.colors[value].data());
}

// As Pillow: of a colour that is transparent, the low bytes count, also where samples had 16 bits; but 16-bit
// grey is compared as it is.
void LibpngReader::find_alpha() {
  if (setjmp(escape_) != 0) fail();
  const int type = png_get_color_type(png_, info_);
  const bool has_channel = (type & PNG_COLOR_MASK_ALPHA) != 0;
  if (wrong_alpha_ && !has_channel) std::longjmp(escape_, 1);
  png_bytep alphas = nullptr;
  int count = 0;
  png_color_16p key = nullptr;
  if (has_channel || png_get_tRNS(png_, info_, &alphas, &count, &key) == 0) return;
  if (type == PNG_COLOR_TYPE_PALETTE) {
    for (int i = 0; i < count; ++i) pixels_.colors[static_cast<size_t>(i)][3] = alphas[i];
    return;
  }
  const bool bilevel = pixels_.layout.sample_bits == 1;
  if (pixels_.layout.samples == Samples::kIndex) {
    const auto value = static_cast<uint8_t>(bilevel && key->gray != 0 ? 0xff : key->gray);
    for (auto& color : pixels_.colors) color[3] = color[0] == value ? 0 : 0xff;
  } else if (pixels_.layout.samples == Samples::kGrey) {
    pixels_.clear = ColorKey{key->gray};
  } else {
    const auto low = [](png_uint_16 value) { return static_cast<uint16_t>(value & 0xff); };
    pixels_.clear = ColorKey{low(key->red), low(key->green), low(key->blue)};
  }
}

void LibpngReader::start(int32_t first, int32_t count) {
  uint8_t* const kept = rows_.take(row_bytes() * (is_interlaced_ ? static_cast<size_t>(count) : 1));
  row_ = kept;
  if (setjmp(escape_) != 0) fail();
  if (is_interlaced_) {
    read_passes(first, count, kept);
  } else {
    skip_rows(first);
  }
}

const uint8_t* LibpngReader::next() {
  const uint8_t* const row = row_;
  if (is_interlaced_) {
    row_ += row_bytes();
    return row;
  }
  if (setjmp(escape_) != 0) fail();
  png_read_row(png_, rows_.data(), nullptr);
  if (wrong_sum_) std::longjmp(escape_, 1);
  return row;
}

void LibpngReader::check() {
  if (setjmp(escape_) != 0) fail();
  if (is_interlaced_) {
    read_passes(0, size_.height, nullptr);
  } else {
    skip_rows(size_.height);
  }
}

void LibpngReader::skip_rows(int32_t count) {
  for (int32_t y = 0; y < count; ++y) png_read_row(png_, nullptr, nullptr);
  if (wrong_sum_) std::longjmp(escape_, 1);
}

// All rows are needed in each pass but the last, which ends with those that are asked for.
void LibpngReader::read_passes(int32_t first, int32_t count, uint8_t* kept) {
  const int passes = png_set_interlace_handling(png_);
  for (int pass = 0; pass < passes; ++pass) {
    const int32_t end = pass + 1 < passes ? size_.height : first + count;
    for (int32_t y = 0; y < end; ++y) {
      const bool wanted = kept != nullptr && y >= first && y < first + count;
      png_read_row(png_, wanted ? kept + static_cast<size_t>(y - first) * row_bytes() : nullptr, nullptr);
    }
  }
  if (wrong_sum_) std::longjmp(escape_, 1);
}

}  // namespace stoker

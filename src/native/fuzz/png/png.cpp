// PNGs of any content: the whole image has the pixels of libpng's plainest decode, or neither can be had; any
// region is that part of it, in bands too, and in every mode; check() has the verdict of a whole decode; and
// what is no region is refused. All kernels give the same rows.
#include <png.h>

#include <cmath>
#include <csetjmp>
#include <cstring>
#include <optional>

#include "core/png/decoder.h"
#include "core/png/libpng_reader.h"
#include "core/png/row_reader.h"
#include "fuzz/decoding.h"
#include "fuzz/input.h"
#include "fuzz/invariant.h"
#include "fuzz/pixels_of.h"

namespace {

using stoker::fuzz::cut;
using stoker::fuzz::decoded;
using stoker::fuzz::kMaxPixels;
using stoker::fuzz::require;
using stoker::fuzz::Rgb;
using Bytes = std::span<const uint8_t>;

// With the checksums that its chunks should have: few inputs would come past them otherwise.
void mend_sums(std::vector<uint8_t>& file) {
  size_t at = 8;
  while (file.size() - at >= 12 && at < file.size()) {
    const uint32_t length =
        uint32_t{file[at]} << 24 | uint32_t{file[at + 1]} << 16 | uint32_t{file[at + 2]} << 8 | file[at + 3];
    if (length > file.size() - at - 12) return;
    uint32_t sum = 0xffffffffu;
    for (size_t i = at + 4; i < at + 8 + length; ++i) {
      sum ^= file[i];
      for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ ((sum & 1) != 0 ? 0xedb88320u : 0);
    }
    sum = ~sum;
    at += 8 + size_t{length};
    for (unsigned i = 0; i < 4; ++i) file[at++] = static_cast<uint8_t>(sum >> (24 - 8 * i));
  }
}

// In a mode other than RGB, whose whole pixels are `rgb`: regions are parts of the whole image, which has the
// colours of `rgb`, or is refused for its palette or its transparency.
void decode_in(stoker::PixelMode mode, Bytes bytes, const Rgb& rgb, stoker::Rect part) {
  static stoker::PngDecoder decoder;
  const auto decode = [&](stoker::Rect region) {
    std::optional<Rgb> pixels;
    stoker::fuzz::succeeds([&] {
      decoder.open(bytes, kMaxPixels, mode);
      pixels = cut(decoder.decode(region), {0, 0, region.width, region.height}, stoker::PixelMode::kRgba);
    });
    return pixels;
  };
  const auto whole = decode({0, 0, rgb.size.width, rgb.size.height});
  require(whole || mode != stoker::PixelMode::kL);
  if (!whole || decoder.is_deep()) return;
  for (size_t i = 0; i < rgb.bytes.size(); ++i) require(rgb.bytes[i] == whole->bytes[i / 3 * 4 + i % 3]);
  // The fourth byte is alpha in RGBA alone, and anything elsewhere.
  const auto seen = decode(part);
  require(seen.has_value());
  if (mode == stoker::PixelMode::kRgba) require(*seen == cut(*whole, part, mode));
}

// The same, a few rows at a time.
std::optional<Rgb> in_bands(Bytes bytes, stoker::Rect part) {
  static stoker::PngDecoder decoder;
  Rgb pixels{{part.width, part.height}, {}};
  const bool succeeded = stoker::fuzz::succeeds([&] {
    decoder.open(bytes, kMaxPixels);
    decoder.start(part);
    for (int32_t end = 0; end < part.height;) {
      const stoker::RgbxRows rows = decoder.next();
      require(rows.first == end || rows.first == 0);
      const Rgb band = cut(rows.pixels, {0, 0, part.width, rows.pixels.size.height});
      pixels.bytes.resize(static_cast<size_t>(rows.first) * static_cast<size_t>(part.width) *
                          stoker::kRgbBytes);
      pixels.bytes.insert(pixels.bytes.end(), band.bytes.begin(), band.bytes.end());
      end = rows.first + rows.pixels.size.height;
    }
  });
  if (!succeeded) return std::nullopt;
  return pixels;
}

// All rows of the file, without libpng; nothing where there is a doubt.
std::optional<std::vector<uint8_t>> rows_alone(const stoker::FilterKernels& kernels, Bytes bytes) {
  stoker::LibpngReader header;
  header.open(bytes, kMaxPixels, stoker::PixelMode::kRgb);
  if (header.is_interlaced()) return std::nullopt;
  const stoker::Extent size = header.size();
  const size_t bits = header.pixels().layout.bits();
  stoker::PngRowReader reader(kernels);
  reader.open(header.data_chunks(), size, static_cast<unsigned>(bits));
  reader.start(0, size.height, size.width);
  std::vector<uint8_t> file_rows;
  for (int32_t y = 0; y < size.height;) {
    const auto rows = reader.next();
    if (!rows) return std::nullopt;
    for (int32_t i = 0; i < rows->count; ++i, ++y) {
      const uint8_t* const row = rows->data + static_cast<size_t>(i) * rows->stride;
      file_rows.insert(file_rows.end(), row, row + (static_cast<size_t>(size.width) * bits + 7) / 8);
    }
  }
  return file_rows;
}

void compare_kernels(Bytes bytes, bool passed) {
  const auto& all = stoker::filter_kernels();
  stoker::fuzz::succeeds([&] {
    const auto rows = rows_alone(*all.front(), bytes);
    require(passed || !rows);
    for (const auto* kernels : all) require(rows_alone(*kernels, bytes) == rows);
  });
}

// A whole decode by libpng's plainest calls.
struct Plain {
  std::vector<uint8_t> samples;  // rows without gaps: RGB, of 16-bit grey two bytes
  std::vector<uint8_t*> rows;
  stoker::Extent size;
  bool wide_grey = false;
  bool wrong_sum = false;
};

void read_plain(png_structp png, png_infop info, Plain& plain) {
  png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png_read_info(png, info);
  png_set_crc_action(png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
  const uint64_t width = png_get_image_width(png, info), height = png_get_image_height(png, info);
  if (width * height > kMaxPixels) png_error(png, "too large");
  plain.size = {static_cast<int32_t>(width), static_cast<int32_t>(height)};
  plain.wide_grey =
      png_get_color_type(png, info) == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png, info) == 16;
  if (!plain.wide_grey) {
    png_set_expand(png);
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    png_set_gray_to_rgb(png);
  }
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  const size_t row_bytes = png_get_rowbytes(png, info);
  plain.samples.resize(row_bytes * height);
  for (size_t y = 0; y < height; ++y) plain.rows.push_back(plain.samples.data() + y * row_bytes);
  png_read_image(png, plain.rows.data());
}

void on_error(png_structp png, png_const_charp) {
  png_longjmp(png, 1);
}

void on_warning(png_structp png, png_const_charp what) {
  if (std::strstr(what, "incorrect data check") != nullptr)
    static_cast<Plain*>(png_get_error_ptr(png))->wrong_sum = true;
}

// Nothing where libpng reports an error, or another sum of the pixels than the file has.
std::optional<Rgb> libpng_pixels(Bytes bytes) {
  static Plain plain;  // outlives the jump
  plain = {};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &plain, on_error, on_warning);
  png_infop info = png_create_info_struct(png);
  if (setjmp(png_jmpbuf(png)) != 0) {
    png_destroy_read_struct(&png, &info, nullptr);
    return std::nullopt;
  }
  png_set_read_fn(png, &bytes, [](png_structp from, png_bytep to, size_t count) {
    auto& left = *static_cast<Bytes*>(png_get_io_ptr(from));
    if (count > left.size()) png_error(from, "cut short");
    std::memcpy(to, left.data(), count);
    left = left.subspan(count);
  });
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_option(png, PNG_MAXIMUM_INFLATE_WINDOW, PNG_OPTION_ON);
  read_plain(png, info, plain);
  png_destroy_read_struct(&png, &info, nullptr);
  if (plain.wrong_sum) return std::nullopt;
  if (!plain.wide_grey) return Rgb{plain.size, plain.samples};
  Rgb grey{plain.size, {}};
  for (size_t i = 0; i < plain.samples.size(); i += 2) {
    const double value = std::round((plain.samples[i] * 256 + plain.samples[i + 1]) / 257.0);
    grey.bytes.insert(grey.bytes.end(), 3, static_cast<uint8_t>(value));
  }
  return grey;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stoker::fuzz::Input input(data, size);
  const uint8_t choice = input.byte();
  const bool mended = (choice & 3) != 3;
  stoker::fuzz::Input choices = input.choices(16);
  std::vector<uint8_t> bytes = input.rest();
  if (mended && bytes.size() >= 8) mend_sums(bytes);
  const int orientation = stoker::png_orientation(bytes);
  require(1 <= orientation && orientation <= 8);
  const auto whole = decoded<stoker::PngDecoder>(bytes, std::nullopt);
  require(stoker::fuzz::passes<stoker::PngDecoder>(bytes) == whole.has_value());
  require(whole == libpng_pixels(bytes));
  compare_kernels(bytes, whole.has_value());
  if (!whole) return 0;
  const stoker::Rect part = stoker::fuzz::some_part(choices, whole->size);
  require(decoded<stoker::PngDecoder>(bytes, part) == cut(*whole, part));
  require(in_bands(bytes, part) == cut(*whole, part));
  stoker::fuzz::decode_any_region<stoker::PngDecoder>(bytes, choices, whole->size);
  const auto mode = static_cast<stoker::PixelMode>(choice >> 2 & 3);
  if (mode != stoker::PixelMode::kRgb) decode_in(mode, bytes, *whole, part);
  return 0;
}

// The header walk of our own beside libjpeg's: where libjpeg reads a header, ours reads it too and both say
// the same of the image.
#include <cstdint>
#include <optional>
#include <string>

#include "core/jpeg/header.h"
#include "core/jpeg/libjpeg.h"
#include "fuzz/input.h"
#include "fuzz/invariant.h"

namespace {

using stoker::JpegColor;
using stoker::fuzz::require;

struct Header {
  uint32_t width, height, restart_interval;
  int components, bits;
  J_COLOR_SPACE color;
  bool progressive, arithmetic;
  int sampling[4];
};

// Nothing also where libjpeg makes up what the file lacks, and says so.
std::optional<Header> libjpeg_header(std::span<const uint8_t> bytes) {
  jpeg_decompress_struct c;
  stoker::JpegErrors errors;
  c.err = errors.install();
  if (setjmp(errors.escape) != 0) {
    jpeg_destroy_decompress(&c);
    return std::nullopt;
  }
  jpeg_create_decompress(&c);
  jpeg_mem_src(&c, bytes.data(), static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&c, TRUE);
  Header header{c.image_width,    c.image_height,     c.restart_interval,         c.num_components,
                c.data_precision, c.jpeg_color_space, c.progressive_mode == TRUE, c.arith_code == TRUE,
                {0, 0, 0, 0}};
  for (int i = 0; i < std::min(4, c.num_components); ++i) {
    header.sampling[i] = c.comp_info[i].h_samp_factor << 4 | c.comp_info[i].v_samp_factor;
  }
  jpeg_destroy_decompress(&c);
  return header;
}

JpegColor color_of(J_COLOR_SPACE color) {
  switch (color) {
    case JCS_GRAYSCALE:
      return JpegColor::kGrey;
    case JCS_RGB:
      return JpegColor::kRgb;
    case JCS_YCbCr:
      return JpegColor::kYcbcr;
    case JCS_CMYK:
      return JpegColor::kCmyk;
    case JCS_YCCK:
      return JpegColor::kYcck;
    default:
      return JpegColor::kOther;
  }
}

// libjpeg takes a segment that claims less than its own length field for an empty one.
bool is_stricter(const std::string& problem) {
  return problem.find("claims the length") != std::string::npos;
}

void compare(const stoker::JpegInfo& ours, const Header& theirs) {
  require(static_cast<uint32_t>(ours.width) == theirs.width);
  require(static_cast<uint32_t>(ours.height) == theirs.height);
  require(ours.components == theirs.components && ours.bits == theirs.bits);
  require(ours.progressive == theirs.progressive && ours.arithmetic == theirs.arithmetic);
  require(ours.restart_interval == theirs.restart_interval);
  require(ours.color == color_of(theirs.color));
  for (int i = 0; i < std::min(4, ours.components); ++i) require(ours.sampling[i] == theirs.sampling[i]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<uint8_t> bytes = stoker::fuzz::Input(data, size).rest();
  std::optional<stoker::JpegInfo> ours;
  std::string problem;
  try {
    ours = stoker::probe_jpeg(bytes);
  } catch (const stoker::Error& error) {
    problem = error.what();
  }
  if (ours) {
    require(ours->width > 0 && ours->height > 0 && ours->components > 0);
    require(1 <= ours->orientation && ours->orientation <= 8);
    require(!std::string(stoker::subsampling_name(*ours)).empty());
  }
  const bool whole = stoker::fuzz::succeeds([&] { stoker::check_jpeg(bytes); });
  require(ours || !whole);
  if (const auto theirs = libjpeg_header(bytes)) {
    require(ours || is_stricter(problem));
    if (ours) compare(*ours, *theirs);
  }
  return 0;
}

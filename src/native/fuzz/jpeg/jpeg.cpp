// JPEG bytes, as a loader decodes them: the whole image has libjpeg's pixels, or neither of the two can be
// had; any region of it is that part of the whole, and can be had at any shrunken size too; and a reader of
// the header alone sees the same size. A check of the entropy-coded data has the verdict of a whole decode,
// and what is no region is refused.
#include "core/jpeg/decoder.h"
#include "core/jpeg/header.h"
#include "fuzz/decoding.h"
#include "fuzz/input.h"
#include "fuzz/invariant.h"
#include "fuzz/pixels_of.h"

namespace {

using stoker::fuzz::cut;
using stoker::fuzz::kMaxPixels;
using stoker::fuzz::require;
using stoker::fuzz::Rgb;
using Bytes = std::span<const uint8_t>;

bool is_of_inks(Bytes bytes) {
  const auto color = stoker::probe_jpeg(bytes).color;
  return color == stoker::JpegColor::kCmyk || color == stoker::JpegColor::kYcck;
}

std::optional<Rgb> decoded(Bytes bytes, int32_t shrink, std::optional<stoker::Rect> part) {
  return stoker::fuzz::decoded<stoker::JpegDecoder>(bytes, part, stoker::PixelMode::kRgb, shrink);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stoker::fuzz::Input input(data, size);
  const int32_t shrink = 1 << (input.byte() & 3);
  stoker::fuzz::Input choices = input.choices(16);
  const std::vector<uint8_t> bytes = input.rest();
  const bool is_marked = stoker::fuzz::succeeds([&] { stoker::check_jpeg(bytes); });
  const auto whole = decoded(bytes, shrink, std::nullopt);
  require(stoker::fuzz::passes<stoker::JpegDecoder>(bytes) == whole.has_value());
  require(is_marked || !whole);
  if (shrink == 1) {
    const auto expected = stoker::fuzz::libjpeg_pixels(bytes, kMaxPixels);
    require(!expected || whole == expected);
    require(expected || !whole || is_of_inks(bytes));
  }
  if (!whole) return 0;
  const stoker::Rect part = stoker::fuzz::some_part(choices, whole->size);
  const auto region = decoded(bytes, shrink, part);
  require(region.has_value());
  // Which of the two decoders shrinks an image depends on damage that a part may not see, and they differ
  // there.
  if (shrink != 1) return 0;
  require(region == cut(*whole, part));
  stoker::fuzz::decode_any_region<stoker::JpegDecoder>(bytes, choices, whole->size);
  return 0;
}

// JPEG bytes, as a loader decodes them: the whole image has libjpeg's pixels, or neither of the two can be
// had; any region of it is that part of the whole, and can be had at any shrunken size too; and a reader of
// the header alone sees the same size. A check of the entropy-coded data has the verdict of a whole decode,
// and what is no region is refused.
#include "core/jpeg/decoder.h"
#include "core/jpeg/header.h"
#include "fuzz/geometry.h"
#include "fuzz/input.h"
#include "fuzz/invariant.h"
#include "fuzz/pixels_of.h"

namespace {

using stoker::fuzz::cut;
using stoker::fuzz::require;
using stoker::fuzz::Rgb;
using Bytes = std::span<const uint8_t>;

constexpr uint64_t kMaxPixels = 1 << 16;  // keeps one input fast

bool passes(Bytes bytes) {
  static stoker::JpegDecoder decoder;
  return stoker::fuzz::succeeds([&] {
    decoder.open(bytes, kMaxPixels);
    decoder.check();
  });
}

// Of an image at 1/shrink of its size. Nothing where it is damaged there.
std::optional<Rgb> decoded(Bytes bytes, int32_t shrink, std::optional<stoker::Rect> part) {
  static stoker::JpegDecoder decoder;  // reused, as a loader's thread does: leftovers of an error would show
  std::optional<Rgb> found;
  stoker::fuzz::succeeds([&] {
    const stoker::Extent size = decoder.open(bytes, kMaxPixels);
    if (!part) part = {0, 0, (size.width + shrink - 1) / shrink, (size.height + shrink - 1) / shrink};
    found = cut(decoder.decode(*part, shrink), {0, 0, part->width, part->height});
  });
  return found;
}

// Of an image that can be decoded: any numbers are a region of it, or refused.
void decode_any_region(Bytes bytes, stoker::fuzz::Input& place, stoker::Extent size) {
  using stoker::fuzz::some_place;
  const int32_t x = some_place(place, size.width), y = some_place(place, size.height);
  const stoker::Rect region{x, y, some_place(place, size.width), some_place(place, size.height)};
  const bool inside = x >= 0 && y >= 0 && region.width > 0 && region.height > 0 &&
                      int64_t{x} + region.width <= size.width && int64_t{y} + region.height <= size.height;
  static stoker::JpegDecoder decoder;
  require(inside == stoker::fuzz::succeeds([&] {
            decoder.open(bytes, kMaxPixels);
            decoder.decode(region);
          }));
}

bool is_of_inks(Bytes bytes) {
  const auto color = stoker::probe_jpeg(bytes).color;
  return color == stoker::JpegColor::kCmyk || color == stoker::JpegColor::kYcck;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stoker::fuzz::Input input(data, size);
  const int32_t shrink = 1 << (input.byte() & 3);
  stoker::fuzz::Input place = input.choices(16);
  const std::vector<uint8_t> bytes = input.rest();
  const bool is_marked = stoker::fuzz::succeeds([&] { stoker::check_jpeg(bytes); });
  const auto whole = decoded(bytes, shrink, std::nullopt);
  require(passes(bytes) == whole.has_value());
  require(is_marked || !whole);
  if (shrink == 1) {
    const auto expected = stoker::fuzz::libjpeg_pixels(bytes, kMaxPixels);
    require(!expected || whole == expected);
    require(expected || !whole || is_of_inks(bytes));
  }
  if (!whole) return 0;
  const stoker::Rect part = stoker::fuzz::some_part(place, whole->size);
  const auto found = decoded(bytes, shrink, part);
  require(found.has_value());
  // Which of the two decoders shrinks an image depends on damage that a part may not see, and they differ
  // there.
  if (shrink != 1) return 0;
  require(found == cut(*whole, part));
  decode_any_region(bytes, place, whole->size);
  return 0;
}

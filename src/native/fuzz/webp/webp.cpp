// WebPs of any content: any region is that part of the whole image; check() has the verdict of a whole
// decode; what is no region is refused; and a still image has the pixels that libwebp gives for the whole,
// with their alpha.
#include <webp/decode.h>

#include <optional>

#include "core/webp/decoder.h"
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

// Of a still image.
std::optional<Rgb> plain_pixels(Bytes bytes) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(bytes.data(), bytes.size(), &features) != VP8_STATUS_OK) return std::nullopt;
  if (features.has_animation != 0 || features.width * features.height > int{kMaxPixels}) return std::nullopt;
  int width = 0, height = 0;
  uint8_t* const pixels = WebPDecodeRGBA(bytes.data(), bytes.size(), &width, &height);
  if (pixels == nullptr) return std::nullopt;
  const stoker::RgbxView view{pixels, static_cast<size_t>(width) * stoker::kRgbxBytes, {width, height}};
  Rgb image = cut(view, {0, 0, width, height}, stoker::PixelMode::kRgba);
  WebPFree(pixels);
  return image;
}

std::optional<Rgb> decoded(Bytes bytes, std::optional<stoker::Rect> part) {
  return stoker::fuzz::decoded<stoker::WebpDecoder>(bytes, part, stoker::PixelMode::kRgba);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stoker::fuzz::Input input(data, size);
  stoker::fuzz::Input choices = input.choices(16);
  const std::vector<uint8_t> bytes = input.rest();
  const auto whole = decoded(bytes, std::nullopt);
  require(stoker::fuzz::passes<stoker::WebpDecoder>(bytes) == whole.has_value());
  const bool is_whole = stoker::fuzz::succeeds([&] { stoker::webp_orientation(bytes); });
  require(is_whole || !whole);
  if (!whole) return 0;
  const auto plain = plain_pixels(bytes);
  require(!plain || plain == whole);
  const stoker::Rect part = stoker::fuzz::some_part(choices, whole->size);
  require(decoded(bytes, part) == cut(*whole, part, stoker::PixelMode::kRgba));
  stoker::fuzz::decode_any_region<stoker::WebpDecoder>(bytes, choices, whole->size);
  return 0;
}

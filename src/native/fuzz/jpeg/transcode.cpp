// The lossless transcoder: what comes out decodes to the pixels of what went in, by libjpeg and by the
// decoder of our own; it is one sequential scan with restart markers; and to transcode it again changes
// nothing.
#include "core/jpeg/transcode.h"

#include "core/jpeg/decoder.h"
#include "core/jpeg/header.h"
#include "fuzz/input.h"
#include "fuzz/invariant.h"
#include "fuzz/pixels_of.h"

namespace {

using stoker::fuzz::cut;
using stoker::fuzz::require;
using stoker::fuzz::Rgb;

constexpr uint64_t kMaxPixels = 1 << 16;

std::optional<std::vector<uint8_t>> transcoded(std::span<const uint8_t> bytes) {
  std::optional<std::vector<uint8_t>> out;
  stoker::fuzz::succeeds([&] { out = stoker::transcode_jpeg(bytes, kMaxPixels); });
  return out;
}

std::optional<Rgb> decoded(std::span<const uint8_t> bytes) {
  static stoker::JpegDecoder decoder;
  std::optional<Rgb> pixels;
  stoker::fuzz::succeeds([&] {
    const stoker::Extent size = decoder.open(bytes, kMaxPixels);
    const stoker::Rect all{0, 0, size.width, size.height};
    pixels = cut(decoder.decode(all), all);
  });
  return pixels;
}

void check_form(const stoker::JpegInfo& before, const stoker::JpegInfo& after) {
  require(!after.progressive && !after.arithmetic && !after.lossless);
  require(after.width == before.width && after.height == before.height);
  require(after.components == before.components && after.color == before.color);
  require(after.orientation == before.orientation);
  require(after.restart_interval != 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<uint8_t> bytes = stoker::fuzz::Input(data, size).rest();
  const auto out = transcoded(bytes);
  if (!out) return 0;
  check_form(stoker::probe_jpeg(bytes), stoker::check_jpeg(*out));
  if (const auto before = decoded(bytes)) require(decoded(*out) == before);
  if (const auto before = stoker::fuzz::libjpeg_pixels(bytes, kMaxPixels)) {
    require(stoker::fuzz::libjpeg_pixels(*out, kMaxPixels) == before);
  }
  require(transcoded(*out) == out);
  return 0;
}

#include <doctest/doctest.h>
#include <webp/decode.h>
#include <webp/encode.h>
#include <webp/mux.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "core/base/errors.h"
#include "core/webp/decoder.h"
#include "tests/photo.h"
#include "tests/regions.h"

namespace stoker {
namespace {

using tests::any_region;
using tests::cut;
using tests::to_rgb;

struct WebpSpec {
  Extent size;
  bool lossless = false;
  bool alpha = false;
  int filter = 1;  // 0: simple loop filter, 1: strong one
  int strength = 60;
  float quality = 60;
};

std::vector<uint8_t> webp(const WebpSpec& spec) {
  WebPConfig config;
  WebPConfigInit(&config);
  config.quality = spec.quality;
  config.lossless = spec.lossless ? 1 : 0;
  config.exact = 1;
  config.filter_type = spec.filter;
  config.filter_strength = spec.strength;
  config.method = 2;
  WebPPicture picture;
  WebPPictureInit(&picture);
  picture.use_argb = spec.lossless ? 1 : 0;
  picture.width = spec.size.width;
  picture.height = spec.size.height;
  WebPMemoryWriter writer;
  WebPMemoryWriterInit(&writer);
  picture.writer = WebPMemoryWrite;
  picture.custom_ptr = &writer;
  const int channels = spec.alpha ? 4 : 3;
  const auto pixels = tests::waves(spec.size, channels, 3);
  const int stride = spec.size.width * channels;
  if ((spec.alpha ? WebPPictureImportRGBA : WebPPictureImportRGB)(&picture, pixels.data(), stride) == 0 ||
      WebPEncode(&config, &picture) == 0) {
    std::abort();
  }
  std::vector<uint8_t> file(writer.mem, writer.mem + writer.size);
  WebPPictureFree(&picture);
  WebPMemoryWriterClear(&writer);
  return file;
}

std::vector<uint8_t> plain_decode(std::span<const uint8_t> file) {
  int width = 0, height = 0;
  uint8_t* const pixels = WebPDecodeRGBA(file.data(), file.size(), &width, &height);
  if (pixels == nullptr) std::abort();
  std::vector<uint8_t> kept = to_rgb({pixels, static_cast<size_t>(width) * kRgbxBytes, {width, height}});
  WebPFree(pixels);
  return kept;
}

bool is_refused(std::span<const uint8_t> file) {
  WebpDecoder decoder;
  try {
    decoder.open(file);
    decoder.check();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBadImage);
    return true;
  }
  return false;
}

TEST_CASE("regions of every kind of WebP are those of libwebp's whole decode") {
  WebpDecoder decoder;
  std::mt19937 random(1);
  for (const bool lossless : {false, true}) {
    for (const bool alpha : {false, true}) {
      for (const int filter : {0, 1}) {
        for (const Extent size : {Extent{75, 61}, Extent{1, 1}, Extent{2, 3}, Extent{17, 130}}) {
          if (lossless && filter == 1) continue;
          CAPTURE(lossless);
          CAPTURE(alpha);
          CAPTURE(filter);
          CAPTURE(size.width);
          const auto file =
              webp({.size = size, .lossless = lossless, .alpha = alpha, .filter = filter, .quality = 10});
          const auto whole = plain_decode(file);
          for (int i = 0; i < 40; ++i) {
            Rect region = any_region(size, random);
            if (i == 0) region = {0, 0, size.width, size.height};
            REQUIRE(decoder.open(file) == size);
            CHECK(to_rgb(decoder.decode(region)) == cut(whole, size, region));
          }
        }
      }
    }
  }
}

TEST_CASE("alpha of regions is that of libwebp's whole decode") {
  WebpDecoder decoder;
  for (const bool lossless : {false, true}) {
    for (const bool alpha : {false, true}) {
      const auto file = webp({.size = {75, 61}, .lossless = lossless, .alpha = alpha});
      int width = 0, height = 0;
      uint8_t* const plain = WebPDecodeRGBA(file.data(), file.size(), &width, &height);
      REQUIRE(plain != nullptr);
      for (const Rect region : {Rect{0, 0, 75, 61}, Rect{7, 5, 33, 41}, Rect{74, 60, 1, 1}}) {
        decoder.open(file);
        CHECK(decoder.has_alpha() == alpha);
        const RgbxView view = decoder.decode(region);
        for (int32_t y = 0; y < region.height; ++y) {
          for (int32_t x = 0; x < region.width; ++x) {
            REQUIRE(view.row(y)[4 * x + 3] == plain[4 * ((region.y + y) * 75 + region.x + x) + 3]);
          }
        }
      }
      WebPFree(plain);
    }
  }
}

// Lossy, of one colour; `alpha` holds a byte a pixel.
std::vector<uint8_t> with_alpha(Extent size, const std::vector<uint8_t>& alpha, int compression) {
  std::vector<uint8_t> pixels;
  for (const uint8_t value : alpha) pixels.insert(pixels.end(), {90, 120, 150, value});
  WebPConfig config;
  WebPConfigInit(&config);
  config.alpha_compression = compression;
  config.alpha_filtering = 2;  // the best of all filters
  WebPPicture picture;
  WebPPictureInit(&picture);
  picture.width = size.width;
  picture.height = size.height;
  WebPMemoryWriter writer;
  WebPMemoryWriterInit(&writer);
  picture.writer = WebPMemoryWrite;
  picture.custom_ptr = &writer;
  if (WebPPictureImportRGBA(&picture, pixels.data(), size.width * 4) == 0 ||
      WebPEncode(&config, &picture) == 0) {
    std::abort();
  }
  std::vector<uint8_t> file(writer.mem, writer.mem + writer.size);
  WebPPictureFree(&picture);
  WebPMemoryWriterClear(&writer);
  return file;
}

TEST_CASE("alpha of regions is that of the whole, however it was filtered") {
  WebpDecoder decoder;
  std::mt19937 random(3);
  const Extent size{120, 90};
  std::set<int> headers;  // compression and filter, in two bits each
  for (const int compression : {0, 1}) {
    for (int kind = 0; kind < 4; ++kind) {
      std::vector<uint8_t> alpha;
      unsigned value = 0;
      for (int32_t y = 0; y < size.height; ++y) {
        const unsigned row = random();
        for (int32_t x = 0; x < size.width; ++x) {
          const auto ux = static_cast<unsigned>(x), uy = static_cast<unsigned>(y);
          if (kind == 0) value = random();
          if (kind == 1) value = row + 3 * ux;           // smooth along rows
          if (kind == 2) value = ux * 2654435761u >> 8;  // the same in each row
          if (kind == 3) value = ux * ux / 40 + uy * uy / 30;
          alpha.push_back(static_cast<uint8_t>(kind == 2 ? value + uy : value));
        }
      }
      const auto file = with_alpha(size, alpha, compression);
      const auto chunk = std::search(file.begin(), file.end(), std::begin("ALPH"), std::begin("ALPH") + 4);
      REQUIRE(file.end() - chunk > 8);
      headers.insert(chunk[8] & 0x0f);
      for (int i = 0; i < 20; ++i) {
        const Rect region = any_region(size, random);
        decoder.open(file);
        const RgbxView view = decoder.decode(region);
        for (int32_t y = 0; y < region.height; ++y) {
          for (int32_t x = 0; x < region.width; ++x) {
            const auto at = static_cast<size_t>((region.y + y) * size.width + region.x + x);
            REQUIRE(view.row(y)[4 * x + 3] == alpha[at]);
          }
        }
      }
    }
  }
  constexpr int kAcross = 5, kDown = 9;  // compressed, and filtered along rows or columns
  CHECK(headers.contains(kAcross));
  CHECK(headers.contains(kDown));
}

TEST_CASE("a WebP that ends early is refused") {
  for (const bool lossless : {false, true}) {
    const auto file = webp({.size = {40, 30}, .lossless = lossless});
    for (size_t bytes = 0; bytes < file.size(); ++bytes) {
      CAPTURE(bytes);
      CHECK(is_refused(std::span(file).first(bytes)));
    }
    CHECK(!is_refused(file));
  }
}

// The sides in the header of a lossless file: 14 bits each.
void set_lossless_size(std::vector<uint8_t>& file, Extent size) {
  REQUIRE(file[12 + 3] == 'L');
  const auto bits = static_cast<uint32_t>(size.width - 1) | static_cast<uint32_t>(size.height - 1) << 14;
  file[21] = static_cast<uint8_t>(bits);
  file[22] = static_cast<uint8_t>(bits >> 8);
  file[23] = static_cast<uint8_t>(bits >> 16);
  file[24] = static_cast<uint8_t>((file[24] & 0xf0) | bits >> 24);
}

TEST_CASE("a claim of more pixels than the bytes can hold is refused before memory is taken") {
  auto lossy = webp({.size = {40, 30}});
  REQUIRE(lossy[12 + 3] == ' ');  // "VP8 "
  lossy[26] = lossy[28] = 0xff;   // of the sides, the low bytes and the high six bits
  lossy[27] = lossy[29] = 0x2a;
  CHECK(is_refused(lossy));
  auto lossless = webp({.size = {40, 30}, .lossless = true});
  set_lossless_size(lossless, {16384, 16384});
  WebpDecoder decoder;
  CHECK_THROWS_AS(decoder.open(lossless), Error);
  decoder.open(lossless, uint64_t{1} << 40);
  try {
    decoder.decode({0, 0, 1, 1});
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBadImage);
  }
}

TEST_CASE("a lossless image of one colour is decoded, of which no byte stands for a pixel") {
  std::vector<uint8_t> file = {'R',  'I',  'F',  'F',  0x1e, 0x00, 0x00, 0x00, 'W',  'E',  'B',  'P',  'V',
                               'P',  '8',  0x4c, 0x11, 0x00, 0x00, 0x00, 0x2f, 0x3f, 0xc0, 0x0f, 0x00, 0x07,
                               0x50, 0xad, 0x1e, 0x14, 0xb9, 0xff, 0x81, 0x88, 0xe8, 0x7f, 0x00, 0x00};
  for (const Extent size : {Extent{1, 1}, {4500, 4500}, {16383, 2}}) {
    set_lossless_size(file, size);
    WebpDecoder decoder;
    REQUIRE(decoder.open(file) == size);
    const RgbxView last = decoder.decode({size.width - 1, size.height - 1, 1, 1});
    CHECK(std::vector<uint8_t>(last.row(0), last.row(0) + 3) == std::vector<uint8_t>{7, 90, 200});
  }
}

TEST_CASE("of an animation the first frame is shown, and black around it") {
  const Extent size{30, 20};
  const auto frame = webp({.size = size});
  const auto whole = plain_decode(frame);
  WebPMux* const mux = WebPMuxNew();
  WebPMuxFrameInfo info = {};
  info.bitstream = {frame.data(), frame.size()};
  info.x_offset = 10;
  info.y_offset = 6;
  info.duration = 100;
  info.id = WEBP_CHUNK_ANMF;
  info.dispose_method = WEBP_MUX_DISPOSE_NONE;
  info.blend_method = WEBP_MUX_BLEND;
  WebPData encoded;
  const WebPMuxAnimParams params{0xff112233u, 0};
  REQUIRE(WebPMuxPushFrame(mux, &info, 1) == WEBP_MUX_OK);
  info.x_offset = 0;
  REQUIRE(WebPMuxPushFrame(mux, &info, 1) == WEBP_MUX_OK);
  REQUIRE(WebPMuxSetAnimationParams(mux, &params) == WEBP_MUX_OK);
  REQUIRE(WebPMuxSetCanvasSize(mux, 64, 48) == WEBP_MUX_OK);
  REQUIRE(WebPMuxAssemble(mux, &encoded) == WEBP_MUX_OK);
  const std::vector<uint8_t> file(encoded.bytes, encoded.bytes + encoded.size);
  WebPDataClear(&encoded);
  WebPMuxDelete(mux);

  std::vector<uint8_t> canvas(64 * 48 * 3, 0);
  for (size_t y = 0; y < 20; ++y) std::copy_n(&whole[y * 90], 90, &canvas[((y + 6) * 64 + 10) * 3]);
  WebpDecoder decoder;
  for (const Rect region : {Rect{0, 0, 64, 48}, Rect{10, 6, 30, 20}, Rect{12, 9, 5, 4}, Rect{35, 20, 29, 28},
                            Rect{0, 0, 10, 6}, Rect{50, 40, 2, 2}}) {
    REQUIRE(decoder.open(file) == Extent{64, 48});
    CHECK(to_rgb(decoder.decode(region)) == cut(canvas, {64, 48}, region));
  }
}

TEST_CASE("a decoder that has refused one image decodes the next") {
  const auto file = webp({.size = {9, 7}});
  const auto whole = plain_decode(file);
  WebpDecoder decoder;
  CHECK_THROWS_AS(decoder.decode({0, 0, 1, 1}), Error);
  CHECK_THROWS_AS(decoder.open({}), Error);
  CHECK_THROWS_AS(decoder.open(std::span(file).first(40)), Error);
  decoder.open(file);
  CHECK_THROWS_AS(decoder.decode({0, 0, 10, 7}), Error);
  CHECK(to_rgb(decoder.decode({0, 0, 9, 7})) == whole);
  CHECK_THROWS_AS(decoder.decode({0, 0, 9, 7}), Error);
}

}  // namespace
}  // namespace stoker

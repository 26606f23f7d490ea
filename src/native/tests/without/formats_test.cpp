// A program of its own, with what stands in for the decoders of PNG and WebP where their libraries are
// missing.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "core/base/errors.h"
#include "core/images/image_decoder.h"
#include "tests/image_files.h"

namespace stoker {
namespace {

TEST_CASE("without its library a format is one of the others, which the core does not decode") {
  CHECK(!has_png());
  CHECK(!has_webp());
  CHECK(format_of(tests::kPng) == ImageFormat::kOther);
  CHECK(format_of(tests::kWebp) == ImageFormat::kOther);
  ImageDecoder decoder;
  CHECK_THROWS_AS(decoder.open(tests::kPng), Error);
  CHECK_THROWS_AS(decoder.open(tests::kWebp), Error);
}

TEST_CASE("without its library a decoder refuses, and says what the build lacks") {
  PngDecoder png;
  CHECK_THROWS_WITH(png.open(tests::kPng), doctest::Contains("libpng was not there when it was built"));
  WebpDecoder webp;
  CHECK_THROWS_WITH(webp.open(tests::kWebp), doctest::Contains("libwebp was not there when it was built"));
}

}  // namespace
}  // namespace stoker

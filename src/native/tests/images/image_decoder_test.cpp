#include "core/images/image_decoder.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "tests/image_files.h"
#include "tests/libjpeg_reference.h"
#include "tests/photo.h"
#include "tests/regions.h"

namespace stoker {
namespace {

using File = std::vector<uint8_t>;

// One of every format that the core was built with.
std::vector<File> every_format() {
  const Extent size{30, 24};
  const File baseline = tests::jpeg(size);
  const File progressive =
      tests::reference_jpeg(tests::waves(size, 3, 1), size, 3, {.across = 2, .down = 2, .progressive = true});
  const std::span<const uint8_t> files[] = {baseline,
                                            progressive,
                                            tests::kPng,
                                            tests::kInterlacedPng,
                                            tests::kWebp,
                                            tests::kLosslessWebp,
                                            tests::kTransparentWebp};
  std::vector<File> all;
  for (const auto file : files) {
    if (format_of(file) != ImageFormat::kOther) all.emplace_back(file.begin(), file.end());
  }
  return all;
}

File decoded(ImageDecoder& decoder, std::span<const uint8_t> file) {
  const Extent size = decoder.open(file);
  return tests::to_rgb(decoder.decode({0, 0, size.width, size.height}));
}

bool is_refused(ImageDecoder& decoder, std::span<const uint8_t> file) {
  try {
    decoded(decoder, file);
  } catch (const Error& error) {
    return error.code() == ErrorCode::kBadImage;
  }
  return false;
}

TEST_CASE("regions of a turned image are those of the whole image, turned") {
  ImageDecoder decoder;
  std::mt19937 random(5);
  for (const File& file : every_format()) {
    for (int exif = 1; exif <= 8; ++exif) {
      CAPTURE(exif);
      const Orientation orientation(exif);
      const Extent stored = decoder.open(file), size = orientation.upright(stored);
      const RgbxView whole = decoder.decode({0, 0, stored.width, stored.height});
      File rgbx(static_cast<size_t>(size.width * size.height) * kRgbxBytes);
      orientation.turn({whole, 0}, stored, rgbx.data());
      const RgbxView turned{rgbx.data(), static_cast<size_t>(size.width) * kRgbxBytes, size};
      const File expected = tests::to_rgb(turned);
      for (int i = 0; i < 4; ++i) {
        const Rect part = i == 0 ? Rect{0, 0, size.width, size.height} : tests::any_region(size, random);
        REQUIRE(decoder.open(file, kDefaultMaxPixels, PixelMode::kRgb, orientation) == size);
        REQUIRE(tests::to_rgb(decoder.decode(part)) == tests::cut(expected, size, part));
      }
      decoder.open(file, kDefaultMaxPixels, PixelMode::kRgb, orientation);
      CHECK_THROWS_AS(decoder.decode({0, 0, size.width + 1, 1}), Error);
      decoder.open(file, kDefaultMaxPixels, PixelMode::kRgb, orientation);
      CHECK_THROWS_AS(decoder.decode({2147483647, 0, 2147483647, 1}), Error);
    }
  }
}

TEST_CASE("decoders of eight threads share nothing, whatever is decoded or refused beside them") {
  const std::vector<File> files = every_format();
  std::vector<File> expected;
  for (const File& file : files) {
    ImageDecoder decoder;
    expected.push_back(decoded(decoder, file));
  }
  std::atomic<int> ready = 0, wrong = 0;
  const auto work = [&](size_t number) {
    ImageDecoder decoder;
    for (++ready; ready < 8;) std::this_thread::yield();
    for (size_t i = number; i < number + 210; ++i) {
      const File& file = files[i % files.size()];
      const bool refused = is_refused(decoder, std::span(file).first(file.size() - 30));
      if (!refused || decoded(decoder, file) != expected[i % files.size()]) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (size_t number = 0; number < 8; ++number) threads.emplace_back(work, number);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace stoker

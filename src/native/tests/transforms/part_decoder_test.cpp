#include "core/transforms/part_decoder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "tests/image_files.h"
#include "tests/photo.h"

namespace stoker {
namespace {

using File = std::vector<uint8_t>;

constexpr PixelMode kModes[] = {PixelMode::kRgb, PixelMode::kL, PixelMode::kRgba, PixelMode::kI16};
constexpr uint8_t kGuard = 0xA5;

// One of every format that the core was built with, 24 x 20 pixels and more.
std::vector<File> every_format() {
  const File baseline = tests::jpeg({61, 47}), grey = tests::jpeg({33, 29}, {}, 1);
  std::vector<File> all;
  for (const std::span<const uint8_t> file :
       {std::span<const uint8_t>(baseline), std::span<const uint8_t>(grey),
        std::span<const uint8_t>(tests::kPng), std::span<const uint8_t>(tests::kWebp),
        std::span<const uint8_t>(tests::kTransparentWebp)}) {
    if (format_of(file) != ImageFormat::kOther) all.emplace_back(file.begin(), file.end());
  }
  return all;
}

// Pixels without gaps, from rows that have some; nothing is written into those.
File decoded(PartDecoder& decoder, std::span<const uint8_t> file, const PartSpec& spec) {
  const Extent size = decoder.open(file, spec);
  const auto height = static_cast<size_t>(size.height);
  const size_t row = static_cast<size_t>(size.width) * pixel_bytes(spec.mode), stride = row + 7;
  File memory(height * stride, kGuard), pixels;
  decoder.write({memory.data(), stride});
  for (size_t y = 0; y < height; ++y) {
    const auto begin = memory.begin() + static_cast<ptrdiff_t>(y * stride);
    pixels.insert(pixels.end(), begin, begin + static_cast<ptrdiff_t>(row));
    for (size_t i = row; i < stride; ++i) REQUIRE(memory[y * stride + i] == kGuard);
  }
  return pixels;
}

// The same one step after the other: all of the image, the part, another size.
File in_steps(std::span<const uint8_t> file, const PartSpec& spec) {
  ImageDecoder decoder;
  const Extent image = decoder.open(file, spec.max_pixels, spec.mode);
  const Rect part = spec.part.value_or(Rect{0, 0, image.width, image.height});
  const Extent size = spec.size.value_or(Extent{part.width, part.height});
  const bool fast = spec.decode == DecodeMode::kFast;
  const int32_t shrink =
      fast ? std::min(decoder.most_shrink(), shrink_for({part.width, part.height}, size)) : 1;
  const RgbxView whole = decoder.decode(
      {0, 0, (image.width + shrink - 1) / shrink, (image.height + shrink - 1) / shrink}, shrink);
  const size_t row = static_cast<size_t>(size.width) * pixel_bytes(spec.mode);
  File pixels(row * static_cast<size_t>(size.height));
  ModeResampler resampler(spec.mode);
  const Rect needed =
      resampler.plan_part(spec.filter, part, size, {0, 0, size.width, size.height}, {shrink, fast});
  const uint8_t* const first = whole.row(needed.y) + static_cast<size_t>(needed.x) * kRgbxBytes;
  resampler.run({first, whole.stride, {needed.width, needed.height}}, false, {pixels.data(), row});
  return pixels;
}

ErrorCode refused(PartDecoder& decoder, std::span<const uint8_t> file, const PartSpec& spec) {
  try {
    decoded(decoder, file, spec);
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("it is not refused");
  return ErrorCode::kIo;
}

TEST_CASE("parts: they are what decoding, cutting and resizing give one after another, in every mode") {
  PartDecoder decoder;  // one for all: nothing is left of the image before
  const std::optional<Rect> rects[] = {std::nullopt, Rect{3, 5, 17, 11}, Rect{0, 0, 1, 1}};
  const std::optional<Extent> sizes[] = {std::nullopt, Extent{9, 30}, Extent{40, 2}};
  for (const File& file : every_format()) {
    for (const PixelMode mode : kModes) {
      CAPTURE(name_of(mode));
      for (const auto& part : rects) {
        for (const auto& size : sizes) {
          for (const Filter filter : {Filter::kNearest, Filter::kBilinear, Filter::kLanczos}) {
            const PartSpec spec{.part = part, .size = size, .mode = mode, .filter = filter};
            REQUIRE(decoded(decoder, file, spec) == in_steps(file, spec));
          }
        }
      }
    }
  }
}

TEST_CASE("parts: fast ones come from an image that is decoded smaller, where they are smaller still") {
  PartDecoder decoder;
  const File file = tests::jpeg({256, 192});
  for (const Extent size : {Extent{31, 24}, Extent{70, 50}, Extent{200, 190}, Extent{300, 20}}) {
    PartSpec spec{.part = Rect{10, 3, 240, 180}, .size = size};
    const File exact = decoded(decoder, file, spec);
    spec.decode = DecodeMode::kFast;
    const File fast = decoded(decoder, file, spec);
    CHECK(fast == in_steps(file, spec));
    CHECK(fast != exact);
    spec.mode = PixelMode::kI16;
    const File deep = decoded(decoder, file, spec);
    spec.decode = DecodeMode::kExact;
    CHECK(decoded(decoder, file, spec) == deep);
  }
}

TEST_CASE("parts: what does not fit is refused, and the next image is decoded") {
  PartDecoder decoder;
  const File file = tests::jpeg({61, 47});
  const File expected = decoded(decoder, file, {});
  for (const Rect part : {Rect{0, 0, 62, 1}, Rect{0, 0, 1, 48}, Rect{-1, 0, 3, 3}, Rect{5, 5, 0, 1},
                          Rect{61, 0, 1, 1}, Rect{2147483647, 0, 2147483647, 1}}) {
    CHECK(refused(decoder, file, {.part = part}) == ErrorCode::kBadArgument);
    CHECK(refused(decoder, file, {.part = part, .size = Extent{5, 5}}) == ErrorCode::kBadArgument);
  }
  CHECK(refused(decoder, file, {.size = Extent{0, 5}}) == ErrorCode::kBadArgument);
  CHECK(refused(decoder, file, {.max_pixels = 61 * 47 - 1}) == ErrorCode::kImageTooLarge);
  CHECK(refused(decoder, std::span(file).first(file.size() / 2), {}) == ErrorCode::kBadImage);
  CHECK(refused(decoder, {}, {}) == ErrorCode::kBadImage);
  CHECK(decoded(decoder, file, {}) == expected);
}

TEST_CASE("parts: decoders of several threads share nothing") {
  const std::vector<File> files = every_format();
  const PartSpec spec{.size = Extent{12, 10}};
  std::vector<File> expected;
  for (const File& file : files) expected.push_back(in_steps(file, spec));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (size_t first = 0; first < 4; ++first) {
    threads.emplace_back([&, first] {
      PartDecoder decoder;
      for (size_t i = 0; i < 4 * files.size(); ++i) {
        const size_t number = (first + i) % files.size();
        if (decoded(decoder, files[number], spec) != expected[number]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace stoker

// TensorFlow 1's bilinear resize: values worked out by hand, and every shape stays inside its buffers.
#include "core/resize/resample_tf1.h"

#include <doctest/doctest.h>

#include <vector>

#include "core/base/errors.h"

namespace stoker {
namespace {

// Grey values of one row or column, as RGB.
std::vector<uint8_t> rgb(const std::vector<uint8_t>& grey) {
  std::vector<uint8_t> pixels;
  for (const uint8_t value : grey) pixels.insert(pixels.end(), kRgbBytes, value);
  return pixels;
}

std::vector<uint8_t> resized(const std::vector<uint8_t>& pixels, Extent in, Extent out, bool align_corners) {
  const size_t stride = static_cast<size_t>(out.width) * kRgbBytes;
  std::vector<uint8_t> result(stride * static_cast<size_t>(out.height));
  resize_tf1(pixels.data(), in, out, align_corners, {result.data(), stride});
  return result;
}

TEST_CASE("corners are aligned, or are not") {
  const std::vector<uint8_t> pixels = rgb({0, 100, 201});
  for (const bool upright : {false, true}) {
    const auto extent = [&](int32_t length) { return upright ? Extent{1, length} : Extent{length, 1}; };
    // Samples at 0, 0.5, 1, 1.5 and 2; 150.5 is cut down, not rounded.
    CHECK(resized(pixels, extent(3), extent(5), true) == rgb({0, 50, 100, 150, 201}));
    // Samples at 0, 0.5, 1, ..., 2.5; behind the last pixel it is repeated.
    CHECK(resized(pixels, extent(3), extent(6), false) == rgb({0, 50, 100, 150, 201, 201}));
    // Smaller: neighbours of 0 and of 1.5 only, and one of one is the first.
    CHECK(resized(pixels, extent(3), extent(2), false) == rgb({0, 150}));
    CHECK(resized(pixels, extent(3), extent(2), true) == rgb({0, 201}));
    CHECK(resized(pixels, extent(3), extent(1), true) == rgb({0}));
  }
}

TEST_CASE("the size it has changes nothing") {
  std::vector<uint8_t> pixels(7 * 5 * kRgbBytes);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 37);
  CHECK(resized(pixels, {7, 5}, {7, 5}, true) == pixels);
  CHECK(resized(pixels, {7, 5}, {7, 5}, false) == pixels);
}

TEST_CASE("one value stays that value in every shape, and nothing is read or written outside") {
  for (const Extent in : {Extent{1, 1}, Extent{1, 97}, Extent{97, 1}, Extent{13, 8}, Extent{640, 3}}) {
    const std::vector<uint8_t> pixels(
        static_cast<size_t>(in.width) * static_cast<size_t>(in.height) * kRgbBytes, 255);
    for (const Extent out : {Extent{1, 1}, Extent{1, 50}, Extent{50, 1}, Extent{301, 299}, Extent{2, 3}}) {
      for (const bool align_corners : {false, true}) {
        const std::vector<uint8_t> result = resized(pixels, in, out, align_corners);
        CHECK(result == std::vector<uint8_t>(result.size(), 255));
      }
    }
  }
}

TEST_CASE("an extent without pixels is refused") {
  const std::vector<uint8_t> pixels(12);
  std::vector<uint8_t> result(12);
  const RgbSlot slot{result.data(), 6};
  CHECK_THROWS_AS(resize_tf1(pixels.data(), {0, 2}, {2, 2}, true, slot), Error);
  CHECK_THROWS_AS(resize_tf1(pixels.data(), {2, 2}, {2, 0}, false, slot), Error);
}

}  // namespace
}  // namespace stoker

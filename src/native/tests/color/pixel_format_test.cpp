// What a batch holds: rounding to float16, and every layout of every type.
#include "core/color/pixel_format.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/color/pixel_split.h"

namespace stoker {
namespace {

double half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  return bits & 0x8000 ? -size : size;
}

TEST_CASE("float16: every number is its own nearest, and halves go to the even one") {
  for (uint16_t bits = 0; bits < 0x7BFF; ++bits) {
    const double low = half_value(bits), high = half_value(static_cast<uint16_t>(bits + 1));
    const double middle = (low + high) / 2;
    const auto next = static_cast<uint16_t>(bits + 1);
    REQUIRE(half_bits(low) == bits);
    REQUIRE(half_bits(-low) == (bits | 0x8000));
    REQUIRE(half_bits(middle) == (bits % 2 == 0 ? bits : next));
    // A float32 cannot tell these from the middle.
    REQUIRE(half_bits(std::nextafter(middle, 0.0)) == bits);
    REQUIRE(half_bits(std::nextafter(middle, 1e9)) == next);
  }
}

TEST_CASE("float16: what is too large is infinite") {
  CHECK(half_bits(65504.0) == 0x7BFF);
  CHECK(half_bits(65519.9) == 0x7BFF);
  CHECK(half_bits(65520.0) == 0x7C00);
  CHECK(half_bits(-std::numeric_limits<double>::infinity()) == 0xFC00);
  CHECK(half_bits(1e-300) == 0);
}

struct Picture {
  Extent size;
  size_t stride;
  std::vector<uint8_t> bytes;
};

Picture noise(int32_t width, int32_t height, size_t gap) {
  Picture picture{{width, height}, static_cast<size_t>(width) * kRgbBytes + gap, {}};
  picture.bytes.resize(picture.stride * static_cast<size_t>(height));
  std::mt19937 random(11);
  for (uint8_t& byte : picture.bytes) byte = static_cast<uint8_t>(random());
  return picture;
}

template <typename Value>
std::vector<Value> written(const PixelFormat& format, Picture picture) {
  std::vector<Value> out(static_cast<size_t>(picture.size.width * picture.size.height) * kRgbBytes + 1);
  const Value guard = out.back() = Value{77};
  REQUIRE(format.value_bytes() == sizeof(Value));
  PixelWriter(format).write({picture.bytes.data(), picture.stride}, picture.size,
                            reinterpret_cast<uint8_t*>(out.data()));
  CHECK(out.back() == guard);
  out.pop_back();
  return out;
}

// What `value` makes of every pixel, where the layout has it.
template <typename Value, typename Make>
void check_places(PixelFormat format, const Make& value) {
  for (const PixelLayout layout : {PixelLayout::kNhwc, PixelLayout::kNchw}) {
    format.layout = layout;
    for (const int32_t width : {1, 3, 15, 16, 17, 40}) {
      const Picture picture = noise(width, 3, 5);
      const std::vector<Value> out = written<Value>(format, picture);
      const size_t columns = static_cast<size_t>(width);
      REQUIRE(out.size() == columns * 9);
      for (size_t y = 0; y < 3; ++y) {
        for (size_t x = 0; x < columns; ++x) {
          for (size_t c = 0; c < 3; ++c) {
            const size_t at =
                layout == PixelLayout::kNhwc ? (y * columns + x) * 3 + c : (c * 3 + y) * columns + x;
            REQUIRE(out[at] == value(picture.bytes[y * picture.stride + x * 3 + c], c));
          }
        }
      }
    }
  }
}

TEST_CASE("pixels: every type in every layout") {
  PixelFormat format{.mean = {0.1, 0.2, 0.3}, .std = {0.25, 0.5, 2.0}};
  const auto exact = [&](uint8_t pixel, size_t c) {
    return (pixel / 255.0 - format.mean[c]) / format.std[c];
  };
  check_places<uint8_t>(format, [](uint8_t pixel, size_t) { return pixel; });
  format.type = PixelType::kFloat32;
  check_places<float>(format, [&](uint8_t pixel, size_t c) { return static_cast<float>(exact(pixel, c)); });
  format.type = PixelType::kFloat16;
  check_places<uint16_t>(format, [&](uint8_t pixel, size_t c) { return half_bits(exact(pixel, c)); });
}

TEST_CASE("pixels: all kernels split alike, at any length, and touch nothing else") {
  const Picture picture = noise(130, 1, 0);
  for (const SplitKernels* kernel : split_kernels()) {
    CAPTURE(kernel->name);
    for (size_t pixels = 0; pixels <= 130; ++pixels) {
      std::vector<uint8_t> planes(3 * pixels + 3, 99);
      uint8_t *red = planes.data(), *green = red + pixels + 1, *blue = green + pixels + 1;
      kernel->split(picture.bytes.data(), pixels, red, green, blue);
      for (size_t i = 0; i < pixels; ++i) {
        REQUIRE(red[i] == picture.bytes[3 * i]);
        REQUIRE(green[i] == picture.bytes[3 * i + 1]);
        REQUIRE(blue[i] == picture.bytes[3 * i + 2]);
      }
      for (const uint8_t* plane : {red, green, blue}) REQUIRE(plane[pixels] == 99);
    }
  }
}

}  // namespace
}  // namespace stoker

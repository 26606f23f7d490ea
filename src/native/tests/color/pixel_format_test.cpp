// What a batch holds: rounding to float16, and every layout of every type.
#include "core/color/pixel_format.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/base/errors.h"
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
void check_positions(PixelFormat format, const Make& value) {
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
  check_positions<uint8_t>(format, [](uint8_t pixel, size_t) { return pixel; });
  format.type = PixelType::kFloat32;
  check_positions<float>(format,
                         [&](uint8_t pixel, size_t c) { return static_cast<float>(exact(pixel, c)); });
  format.type = PixelType::kFloat16;
  check_positions<uint16_t>(format, [&](uint8_t pixel, size_t c) { return half_bits(exact(pixel, c)); });
}

// Every channel of every pixel in both layouts, of a mode other than RGB.
template <typename Sample, typename Value, typename Make>
void check_mode(PixelMode mode, PixelFormat format, const Make& value) {
  const size_t channels = channels_of(mode), width = 19, height = 3, stride = width * pixel_bytes(mode) + 4;
  std::mt19937 random(5);
  std::vector<uint8_t> rows(stride * height);
  for (uint8_t& byte : rows) byte = static_cast<uint8_t>(random());
  for (const PixelLayout layout : {PixelLayout::kNhwc, PixelLayout::kNchw}) {
    format.layout = layout;
    std::vector<Value> out(width * height * channels + 1);
    const Value guard = out.back() = Value{77};
    REQUIRE(format.value_bytes() == sizeof(Value));
    PixelWriter(format, mode).write({rows.data(), stride}, {19, 3}, reinterpret_cast<uint8_t*>(out.data()));
    REQUIRE(out.back() == guard);
    for (size_t y = 0; y < height; ++y) {
      for (size_t x = 0; x < width; ++x) {
        for (size_t c = 0; c < channels; ++c) {
          const size_t at =
              layout == PixelLayout::kNhwc ? (y * width + x) * channels + c : (c * height + y) * width + x;
          Sample pixel;
          std::memcpy(&pixel, &rows[y * stride + (x * channels + c) * sizeof pixel], sizeof pixel);
          REQUIRE(out[at] == value(pixel, c));
        }
      }
    }
  }
}

TEST_CASE("pixels: every mode in every type and layout") {
  const auto same = [](auto pixel, size_t) { return pixel; };
  check_mode<uint8_t, uint8_t>(PixelMode::kL, {}, same);
  check_mode<uint8_t, uint8_t>(PixelMode::kRgba, {}, same);
  check_mode<uint16_t, uint16_t>(PixelMode::kI16, {.type = PixelType::kUint16}, same);
  const std::vector<double> mean{0.1, 0.2, 0.3, 0.4}, std{0.25, 0.5, 2.0, 4.0};
  for (const PixelMode mode : {PixelMode::kL, PixelMode::kRgba, PixelMode::kI16}) {
    const auto channels = static_cast<std::ptrdiff_t>(channels_of(mode));
    PixelFormat format{.mean = {mean.begin(), mean.begin() + channels},
                       .std = {std.begin(), std.begin() + channels}};
    const double most = mode == PixelMode::kI16 ? 65535.0 : 255.0;
    const auto exact = [&](auto pixel, size_t c) { return (pixel / most - mean[c]) / std[c]; };
    const auto single = [&](auto pixel, size_t c) { return static_cast<float>(exact(pixel, c)); };
    const auto half = [&](auto pixel, size_t c) { return half_bits(exact(pixel, c)); };
    format.type = PixelType::kFloat32;
    if (mode == PixelMode::kI16) {
      check_mode<uint16_t, float>(mode, format, single);
    } else {
      check_mode<uint8_t, float>(mode, format, single);
    }
    format.type = PixelType::kFloat16;
    if (mode == PixelMode::kI16) {
      check_mode<uint16_t, uint16_t>(mode, format, half);
    } else {
      check_mode<uint8_t, uint16_t>(mode, format, half);
    }
  }
}

TEST_CASE("pixels: other whole numbers, and more or fewer numbers than channels, are refused") {
  const auto refused = [](const PixelFormat& format, PixelMode mode) {
    try {
      PixelWriter(format, mode);
    } catch (const Error& error) {
      return error.code() == ErrorCode::kBadArgument;
    }
    return false;
  };
  CHECK(refused({}, PixelMode::kI16));
  CHECK(refused({.type = PixelType::kUint16}, PixelMode::kRgb));
  CHECK(refused({.type = PixelType::kUint16}, PixelMode::kL));
  CHECK(refused({.mean = {0.5}}, PixelMode::kRgb));
  CHECK(refused({.std = {1.0, 1.0, 1.0}}, PixelMode::kRgba));
  CHECK(refused({.mean = {0.5, 0.5, 0.5}}, PixelMode::kL));
  CHECK(!refused({.mean = {0.5}, .std = {0.5}}, PixelMode::kL));
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

// Pixels from one mode to another, and in and out of the four bytes that carry them, against the rules
// written out for one pixel.
#include "core/base/pixel_mode.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/base/pack_kernels.h"

namespace stoker {
namespace {

constexpr PixelMode kModes[] = {PixelMode::kRgb, PixelMode::kL, PixelMode::kRgba, PixelMode::kI16};
constexpr uint8_t kGuard = 0xA5;

std::vector<uint8_t> noise(size_t bytes) {
  std::mt19937 random(3);
  std::vector<uint8_t> values(bytes);
  for (uint8_t& byte : values) byte = static_cast<uint8_t>(random());
  return values;
}

int grey_of(const uint8_t* rgb) {
  return (19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) / 65536;
}

uint16_t word(const uint8_t* at) {
  uint16_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

TEST_CASE("modes: how many channels and bytes a pixel has, and what Pillow calls it") {
  CHECK(channels_of(PixelMode::kRgb) == 3);
  CHECK(channels_of(PixelMode::kL) == 1);
  CHECK(channels_of(PixelMode::kRgba) == 4);
  CHECK(channels_of(PixelMode::kI16) == 1);
  CHECK(pixel_bytes(PixelMode::kI16) == 2);
  CHECK(name_of(PixelMode::kI16) == std::string("I;16"));
  CHECK(name_of(PixelMode::kRgba) == std::string("RGBA"));
}

TEST_CASE("modes: RGBX becomes what Pillow converts it to, in place too") {
  for (const size_t pixels : {size_t{0}, size_t{1}, size_t{7}, size_t{64}, size_t{1001}}) {
    const auto from = noise(pixels * 4 + 1);
    for (const PixelMode mode : kModes) {
      std::vector<uint8_t> to(pixels * 4 + 1, kGuard), same = from;
      to_mode(mode, from.data(), pixels, to.data());
      to_mode(mode, same.data(), pixels, same.data());
      REQUIRE(to.back() == kGuard);
      for (size_t x = 0; x < pixels; ++x) {
        const uint8_t *in = &from[4 * x], *out = &to[4 * x];
        const int grey = grey_of(in);
        for (int c = 0; c < 3; ++c) {
          if (mode == PixelMode::kRgb || mode == PixelMode::kRgba) REQUIRE(out[c] == in[c]);
          if (mode == PixelMode::kL) REQUIRE(out[c] == grey);
        }
        if (mode == PixelMode::kRgba) REQUIRE(out[3] == 255);
        if (mode == PixelMode::kI16) REQUIRE(word(out) == grey);
        REQUIRE(std::memcmp(out, &same[4 * x], mode == PixelMode::kI16 ? 2 : 3) == 0);
      }
    }
  }
}

TEST_CASE("modes: pixels end to end come back as they were") {
  for (const PixelMode mode : kModes) {
    const size_t bytes = pixel_bytes(mode);
    for (const size_t pixels : {size_t{0}, size_t{1}, size_t{5}, size_t{333}}) {
      const auto from = noise(pixels * bytes);
      std::vector<uint8_t> carried(pixels * 4 + 1, kGuard), back(pixels * bytes + 1, kGuard);
      unpack(mode, from.data(), pixels, carried.data());
      pack(mode, carried.data(), pixels, back.data());
      REQUIRE(carried.back() == kGuard);
      REQUIRE(back.back() == kGuard);
      back.pop_back();
      REQUIRE(back == from);
      for (size_t x = 0; x < pixels && mode == PixelMode::kL; ++x) {
        for (size_t c = 0; c < 3; ++c) REQUIRE(carried[4 * x + c] == from[x]);
      }
    }
  }
}

TEST_CASE("modes: all kernels pack alike, at any length, and touch nothing else") {
  const auto from = noise(100 * 4);
  for (const PackKernels* kernel : pack_kernels()) {
    CAPTURE(kernel->name);
    for (size_t pixels = 0; pixels <= 100; ++pixels) {
      std::vector<uint8_t> to(pixels * 3 + 40, kGuard);
      const std::vector<uint8_t> exact(from.begin(), from.begin() + static_cast<ptrdiff_t>(pixels * 4));
      kernel->to_rgb(exact.data(), pixels, to.data());
      for (size_t i = 0; i < pixels * 3; ++i) REQUIRE(to[i] == from[i / 3 * 4 + i % 3]);
      for (size_t i = pixels * 3; i < to.size(); ++i) REQUIRE(to[i] == kGuard);
    }
  }
}

}  // namespace
}  // namespace stoker

// Every set of kernels must give the bytes of the portable one, on shapes that reach all edges of the vector
// code.
#include "core/resize/resample.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "core/base/errors.h"

namespace stoker {
namespace {

struct Picture {
  std::vector<uint8_t> bytes;
  RgbxView view;
};

Picture noise(Extent size, uint32_t seed) {
  std::mt19937 random(seed);
  Picture picture;
  const size_t stride = static_cast<size_t>(size.width) * kRgbxBytes;
  picture.bytes.resize(stride * static_cast<size_t>(size.height) + kRgbxPadding);
  for (uint8_t& byte : picture.bytes) byte = static_cast<uint8_t>(random());
  picture.view = {picture.bytes.data(), stride, size};
  return picture;
}

std::vector<uint8_t> resized(const ResampleKernels& kernels, Filter filter, const Picture& whole, Extent out,
                             Rect window, bool flip) {
  Resampler resampler(kernels);
  resampler.plan(filter, whole.view.size, out, window);
  const Rect need = resampler.needed();
  const RgbxView part{whole.view.row(need.y) + static_cast<size_t>(need.x) * kRgbxBytes,
                      whole.view.stride,
                      {need.width, need.height}};
  const size_t stride = static_cast<size_t>(window.width) * kRgbBytes;
  std::vector<uint8_t> result(stride * static_cast<size_t>(window.height));
  resampler.run(part, flip, {result.data(), stride});
  return result;
}

TEST_CASE("all kernels give the bytes of the portable ones") {
  std::mt19937 random(7);
  const auto side = [&](int most) {
    return static_cast<int32_t>(random() % static_cast<unsigned>(most)) + 1;
  };
  for (const ResampleKernels* kernels : resample_kernels()) {
    CAPTURE(kernels->name);
    for (int round = 0; round < 300; ++round) {
      const Extent in{side(90), side(90)}, out{side(90), side(90)};
      const int32_t x = side(out.width) - 1, y = side(out.height) - 1;
      const Rect window{x, y, side(out.width - x), side(out.height - y)};
      const auto filter = static_cast<Filter>(random() % 5);
      const bool flip = random() % 2 != 0;
      const Picture picture = noise(in, random());
      CAPTURE(in.width);
      CAPTURE(in.height);
      CAPTURE(out.width);
      CAPTURE(out.height);
      REQUIRE(resized(*kernels, filter, picture, out, window, flip) ==
              resized(*resample_kernels().back(), filter, picture, out, window, flip));
    }
  }
}

TEST_CASE("coarse weights: all kernels agree, and the result is close to that of fine ones") {
  std::mt19937 random(8);
  const auto side = [&](int most) {
    return static_cast<int32_t>(random() % static_cast<unsigned>(most)) + 1;
  };
  const Sampling coarse{1, true};
  for (int round = 0; round < 300; ++round) {
    const Extent in{side(90), side(90)}, out{side(60), side(60)};
    const Rect all{0, 0, in.width, in.height}, window{0, 0, out.width, out.height};
    const auto filter = static_cast<Filter>(1 + random() % 4);
    const Picture picture = noise(in, random());
    const auto run = [&](const ResampleKernels& kernels, Sampling sampling) {
      Resampler resampler(kernels);
      const Rect need = resampler.plan_part(filter, all, out, window, sampling);
      const RgbxView part{picture.view.row(need.y) + static_cast<size_t>(need.x) * kRgbxBytes,
                          picture.view.stride,
                          {need.width, need.height}};
      std::vector<uint8_t> rgb(static_cast<size_t>(out.width * out.height) * kRgbBytes);
      resampler.run(part, false, {rgb.data(), static_cast<size_t>(out.width) * kRgbBytes});
      return rgb;
    };
    const auto expected = run(*resample_kernels().back(), coarse), fine = run(*resample_kernels().back(), {});
    for (const ResampleKernels* kernels : resample_kernels()) REQUIRE(run(*kernels, coarse) == expected);
    for (size_t i = 0; i < fine.size(); ++i) REQUIRE(std::abs(fine[i] - expected[i]) <= 3);
  }
}

TEST_CASE("a part of a shrunken image does not look beyond its edges, and begins between pixels") {
  // Columns 0..19 of brightness 10 x: a part from column 5 to 15, shrunken by 2, is columns 2.5 to 7.5.
  Picture picture = noise({10, 1}, 1);
  for (size_t x = 0; x < 10; ++x)
    std::fill_n(&picture.bytes[x * kRgbxBytes], 4, static_cast<uint8_t>(20 * x + 5));
  Resampler resampler;
  const Rect need = resampler.plan_part(Filter::kBilinear, {5, 0, 10, 2}, {5, 1}, {0, 0, 5, 1}, {2, true});
  CHECK(need == Rect{2, 0, 6, 1});
  uint8_t rgb[5 * kRgbBytes];
  const RgbxView part{picture.view.row(0) + 2 * kRgbxBytes, picture.view.stride, {6, 1}};
  resampler.run(part, false, {rgb, sizeof rgb});
  for (int x = 0; x < 5; ++x) CHECK(std::abs(rgb[x * 3] - (20 * (x + 2.5) + 5)) <= 2);
}

TEST_CASE("a constant image stays constant, so weights add up") {
  for (const ResampleKernels* kernels : resample_kernels()) {
    for (const Filter filter :
         {Filter::kNearest, Filter::kBox, Filter::kBilinear, Filter::kBicubic, Filter::kLanczos}) {
      Picture picture = noise({37, 53}, 1);
      std::fill(picture.bytes.begin(), picture.bytes.end(), uint8_t{201});
      for (const uint8_t byte : resized(*kernels, filter, picture, {64, 20}, {0, 0, 64, 20}, false)) {
        REQUIRE(byte == 201);
      }
    }
  }
}

TEST_CASE("senseless sizes and windows are refused") {
  Resampler resampler;
  CHECK_THROWS_AS(resampler.plan(Filter::kBilinear, {0, 5}, {5, 5}, {0, 0, 5, 5}), Error);
  CHECK_THROWS_AS(resampler.plan(Filter::kBilinear, {5, 5}, {5, 0}, {0, 0, 5, 5}), Error);
  CHECK_THROWS_AS(resampler.plan(Filter::kBilinear, {5, 5}, {5, 5}, {1, 0, 5, 5}), Error);
  CHECK_THROWS_AS(resampler.plan(Filter::kBilinear, {5, 5}, {5, 5}, {0, 0, 5, 0}), Error);
}

}  // namespace
}  // namespace stoker

// Every set of kernels must give the bytes of the portable one, on shapes that reach all edges of the vector
// code.
#include "core/resize/resample.h"

#include <doctest/doctest.h>

#include <algorithm>
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

TEST_CASE("rows that come in stretches, or twice, give the bytes of all at once") {
  std::mt19937 random(8);
  const auto side = [&](int most) {
    return static_cast<int32_t>(random() % static_cast<unsigned>(most)) + 1;
  };
  for (int round = 0; round < 600; ++round) {
    const Extent in{side(90), side(round % 4 == 0 ? 400 : 90)};
    const Extent out{round % 5 == 0 ? in.width : side(90), round % 7 == 0 ? in.height : side(90)};
    const int32_t x = side(out.width) - 1, y = side(out.height) - 1;
    const Rect window{x, y, side(out.width - x), side(out.height - y)};
    const auto filter = static_cast<Filter>(random() % 5);
    const bool flip = random() % 2 != 0;
    const Picture picture = noise(in, random());
    CAPTURE(round);
    const auto expected = resized(*resample_kernels().front(), filter, picture, out, window, flip);
    Resampler resampler;
    resampler.plan(filter, in, out, window);
    const Rect need = resampler.needed();
    const size_t stride = static_cast<size_t>(window.width) * kRgbBytes;
    std::vector<uint8_t> result(stride * static_cast<size_t>(window.height));
    resampler.start(flip, {result.data(), stride});
    const auto add = [&](const Picture& from, int32_t first, int32_t rows) {
      const uint8_t* begin = from.view.row(need.y + first) + static_cast<size_t>(need.x) * kRgbxBytes;
      resampler.add({begin, from.view.stride, {need.width, rows}}, first);
    };
    if (round % 3 == 0) add(noise(in, random()), 0, side(need.height));  // to be replaced
    for (int32_t first = 0, rows = 0; first < need.height; first += rows) {
      rows = std::min(side(40), need.height - first);
      add(picture, first, rows);
    }
    resampler.finish();
    REQUIRE(result == expected);
  }
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

TEST_CASE("an image of which few rows are held at a time gives the bytes of two whole passes") {
  std::mt19937 random(10);
  const ResampleKernels& kernels = *resample_kernels().back();
  for (const int32_t height : {129, 300, 900}) {
    for (const auto filter : {Filter::kBox, Filter::kBilinear, Filter::kLanczos}) {
      for (const Extent out : {Extent{5, 700}, {2, height - 30}, {1, 256}}) {
        const Extent in{height / 2 + 9, height};  // Pillow's first pass goes across
        const Picture picture = noise(in, random());
        ResamplePlan plan;
        plan.plan(filter, in, out, {0, 0, out.width, out.height});
        REQUIRE_FALSE(plan.goes_down_first());
        const size_t row = static_cast<size_t>(out.width) * kRgbBytes;
        std::vector<uint8_t> between(row * static_cast<size_t>(in.height) + kRgbxPadding);
        kernels.horizontal(plan.across().view(), picture.view, 0, false, {between.data(), row});
        std::vector<uint8_t> expected(row * static_cast<size_t>(out.height));
        kernels.vertical(plan.down().view(), between.data(), row, 0, row, {expected.data(), row});
        CAPTURE(height);
        REQUIRE(resized(kernels, filter, picture, out, {0, 0, out.width, out.height}, false) == expected);
      }
    }
  }
}

TEST_CASE("the parts of a weight are the weight, also where edges leave few taps") {
  std::mt19937 random(9);
  const unsigned longest[] = {4, 90, 4000};
  const auto side = [&] { return static_cast<int32_t>(random() % longest[random() % 3]) + 1; };
  for (int round = 0; round < 1500; ++round) {
    const Rect part{side(), side(), side(), side()};
    const Extent out{side(), side()};
    const Rect corner{random() % 2 == 0 ? 0 : out.width - 1, random() % 2 == 0 ? 0 : out.height - 1, 1, 1};
    const auto filter = static_cast<Filter>(1 + random() % 4);
    ResamplePlan plan;
    plan.plan_part(filter, part, out, corner, {1 << random() % 4, random() % 2 == 0});
    for (const Taps* taps : {&plan.across(), &plan.down()}) {
      const TapsView view = taps->view();
      size_t wrong = 0;
      for (size_t i = 0; i < taps->weights.size(); ++i) {
        const int8_t* const digits = view.digits + i / 4 * 12 + i % 4;
        wrong += view.high[i] * 2048 + view.low[i] != view.weights[i];
        wrong += digits[0] * 65536 + digits[4] * 256 + digits[8] != view.weights[i];
        wrong += view.coarse && (view.low[i] != 0 || digits[8] != 0);
      }
      CAPTURE(round);
      REQUIRE(wrong == 0);
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

// Colour jitter: the rules of Pillow in its own arithmetic, for colours in steps of a prime; all kernels; and
// the random choices.
#include "core/color/color_jitter.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/color/color_kernels.h"
#include "tests/rounds.h"
#include "tests/transforms.h"

namespace stoker {
namespace {

// What is done to a sample where the brightness is changed, or all colours.
std::vector<OperationStep> steps(const SampleRandom& random, bool contrast = true) {
  const auto jitter = tests::jitter({2}, contrast ? tests::Numbers{2} : tests::Numbers{1, 1}, {2}, {0.5});
  return tests::transform("Resize", {1, 1}, {}, {jitter}).steps(random);
}

JitterPlan only(ColorOp op, double factor) {
  JitterPlan plan;
  plan.order[0] = op;
  plan.factors[static_cast<size_t>(op)] = factor;
  plan.count = 1;
  return plan;
}

struct Colour {
  uint8_t red, green, blue;
  friend bool operator==(const Colour&, const Colour&) = default;
};

// As Pillow computes it, float and double where it has them.
Colour turned(const Colour& rgb, uint8_t turn) {
  const int most = std::max({rgb.red, rgb.green, rgb.blue}), least = std::min({rgb.red, rgb.green, rgb.blue});
  if (most == least) return rgb;
  const auto range = static_cast<float>(most - least);
  const auto part = [&](uint8_t value) { return static_cast<float>(most - value) / range; };
  const float r = part(rgb.red), g = part(rgb.green), b = part(rgb.blue);
  float hue = 0;
  if (rgb.red == most) {
    hue = b - g;
  } else if (rgb.green == most) {
    hue = static_cast<float>(2.0 + r - b);
  } else {
    hue = static_cast<float>(4.0 + g - r);
  }
  hue = static_cast<float>(std::fmod(hue / 6.0 + 1.0, 1.0));
  const auto h = static_cast<uint8_t>(static_cast<int>(hue * 255.0) + turn);
  const int s = static_cast<int>(range / static_cast<float>(most) * 255.0);
  const auto v = static_cast<uint8_t>(most);
  if (s == 0) return {v, v, v};
  const int sector = static_cast<int>(h * 6.0 / 255.0);
  const auto rest = static_cast<float>(h * 6.0 / 255.0 - sector);
  const auto share = static_cast<float>(s / 255.0);
  const auto p = static_cast<uint8_t>(std::round(v * (1.0 - share)));
  const auto q = static_cast<uint8_t>(std::round(v * (1.0 - share * rest)));
  const auto t = static_cast<uint8_t>(std::round(v * (1.0 - share * (1.0 - rest))));
  const Colour sectors[6] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
  return sectors[sector % 6];
}

TEST_CASE("color: hues are Pillow's") {
  std::vector<uint8_t> before;
  for (uint32_t colour = 0; colour < 1U << 24; colour += 13 * tests::kThinned) {
    before.insert(before.end(), {static_cast<uint8_t>(colour >> 16), static_cast<uint8_t>(colour >> 8),
                                 static_cast<uint8_t>(colour)});
  }
  const Extent size{static_cast<int32_t>(before.size() / kRgbBytes), 1};
  for (const ColorKernels* kernels : color_kernels()) {
    CAPTURE(kernels->name);
    for (const auto& hue : {std::pair{1e-9, 0}, {0.1, 25}, {-0.1, 231}, {0.5, 127}, {-0.5, 129}}) {
      const double factor = hue.first;
      const auto turn = static_cast<uint8_t>(hue.second);
      CAPTURE(factor);
      std::vector<uint8_t> after = before;
      apply_jitter(only(ColorOp::kHue, factor), {after.data(), after.size()}, size, *kernels);
      size_t wrong = 0;
      for (size_t i = 0; i < before.size(); i += kRgbBytes) {
        const Colour expected = turned({before[i], before[i + 1], before[i + 2]}, turn);
        wrong += !(Colour{after[i], after[i + 1], after[i + 2]} == expected);
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("color: all kernels change the same pixels, and no byte between rows") {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const Extent size{static_cast<int32_t>(random() % 300) + 1, static_cast<int32_t>(random() % 4) + 1};
    const size_t width = static_cast<size_t>(size.width) * kRgbBytes, stride = width + random() % 3;
    std::vector<uint8_t> before(stride * static_cast<size_t>(size.height));
    for (uint8_t& byte : before) byte = static_cast<uint8_t>(random());
    JitterPlan plan{{ColorOp::kBrightness, ColorOp::kContrast, ColorOp::kSaturation, ColorOp::kHue}, {}, 4};
    std::ranges::shuffle(plan.order, random);
    for (double& factor : plan.factors) factor = static_cast<double>(random() % 300) / 100;
    plan.factors[static_cast<size_t>(ColorOp::kHue)] = static_cast<double>(random() % 100) / 100 - 0.5;
    std::vector<uint8_t> expected = before;
    apply_jitter(plan, {expected.data(), stride}, size, *color_kernels().back());
    for (size_t i = 0; i < before.size(); ++i) {
      if (i % stride >= width) REQUIRE(expected[i] == before[i]);
    }
    for (const ColorKernels* kernels : color_kernels()) {
      CAPTURE(kernels->name);
      std::vector<uint8_t> after = before;
      apply_jitter(plan, {after.data(), stride}, size, *kernels);
      REQUIRE(after == expected);
    }
  }
}

TEST_CASE("color: an image of rows with gaps is changed as one without") {
  const Extent size{5, 4};
  std::vector<uint8_t> tight(60), loose(80);
  for (size_t i = 0; i < tight.size(); ++i)
    loose[i / 15 * 20 + i % 15] = tight[i] = static_cast<uint8_t>(i * 37);
  const JitterPlan plan = only(ColorOp::kContrast, 1.7);  // of which the mean is of the whole image
  apply_jitter(plan, {tight.data(), 15}, size);
  apply_jitter(plan, {loose.data(), 20}, size);
  for (size_t i = 0; i < tight.size(); ++i) REQUIRE(loose[i / 15 * 20 + i % 15] == tight[i]);
}

TEST_CASE("color: the mean grey is rounded, halves up") {
  uint8_t pixels[6] = {10, 10, 10, 11, 11, 11};
  apply_jitter(only(ColorOp::kContrast, 0.0), {pixels, 6}, {2, 1});
  CHECK(pixels[0] == 11);
}

TEST_CASE("color: nothing happens to an image without pixels, or where nothing takes part") {
  uint8_t pixel[3] = {1, 2, 3};
  apply_jitter(only(ColorOp::kBrightness, 0.0), {pixel, 3}, {0, 1});
  apply_jitter(only(ColorOp::kContrast, 0.0), {pixel, 3}, {1, 0});
  CHECK_FALSE(tests::transform("Resize", {1, 1}, {}, {tests::jitter({0})}).changes_pixels());
  apply_jitter(JitterPlan{}, {pixel, 3}, {1, 1});
  CHECK(pixel[0] == 1);
}

TEST_CASE("color: the settings of one operation never change the factors of the others") {
  for (uint64_t index = 0; index < 100; ++index) {
    auto more = steps(SampleRandom(5, 6, index));
    auto less = steps(SampleRandom(5, 6, index), false);
    REQUIRE(more.size() == 4);
    std::erase_if(more, [](const OperationStep& step) { return step.first == "contrast"; });
    std::ranges::sort(more), std::ranges::sort(less);
    REQUIRE(more == less);
  }
}

TEST_CASE("color: all 24 orders are equally likely") {
  std::map<std::string, int> seen;
  for (uint64_t index = 0; index < 24000; ++index) {
    std::string order;
    for (const OperationStep& step : steps(SampleRandom(9, 0, index))) order += step.first[0];
    ++seen[order];
  }
  CHECK(seen.size() == 24);
  for (const auto& entry : seen) {
    CAPTURE(entry.first);
    CHECK(std::abs(entry.second - 1000) < 160);  // five standard deviations
  }
}

}  // namespace
}  // namespace stoker

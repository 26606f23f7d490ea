// Resizing of grey, alpha and 16 bits against the rules of Pillow written out plainly.
#include "core/resize/resample_modes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/base/errors.h"

namespace stoker {
namespace {

struct Case {
  Extent in;
  Extent out;
  Rect window;
  Filter filter;
  bool flip;
};

class Cases {
 public:
  Case next() {
    ++round_;
    const Extent in{side(70), side(round_ % 4 == 0 ? 300 : 70)};
    const Extent out{round_ % 5 == 0 ? in.width : side(60), round_ % 7 == 0 ? in.height : side(60)};
    const int32_t x = side(out.width) - 1, y = side(out.height) - 1;
    return {in,
            out,
            {x, y, side(out.width - x), side(out.height - y)},
            static_cast<Filter>(random_() % 5),
            random_() % 2 != 0};
  }

  int32_t side(int32_t most) { return static_cast<int32_t>(random_() % static_cast<unsigned>(most)) + 1; }

  // Often all or nothing, so that sums leave the range of numbers.
  std::vector<uint8_t> bytes(size_t count) {
    const bool extreme = random_() % 2 != 0;
    std::vector<uint8_t> values(count);
    for (uint8_t& byte : values) {
      const auto value = random_();
      byte = static_cast<uint8_t>(extreme ? (value % 2 != 0 ? 255 : 0) : value);
    }
    return values;
  }

 private:
  std::mt19937 random_{17};
  int round_ = 0;
};

// In stretches of any length. `pixels` are those of the whole input, end to end.
std::vector<uint8_t> resized(PixelMode mode, const Case& shape, const std::vector<uint8_t>& pixels,
                             Cases& random) {
  constexpr uint8_t kGuard = 0xA5;
  const auto width = static_cast<size_t>(shape.in.width);
  std::vector<uint8_t> carried(width * static_cast<size_t>(shape.in.height) * kRgbxBytes + kRgbxPadding);
  unpack(mode, pixels.data(), width * static_cast<size_t>(shape.in.height), carried.data());
  const size_t row = static_cast<size_t>(shape.window.width) * pixel_bytes(mode), stride = row + 2;
  std::vector<uint8_t> result(stride * static_cast<size_t>(shape.window.height), kGuard);
  ModeResampler resampler(mode);
  const Rect need =
      resampler.plan_part(shape.filter, {0, 0, shape.in.width, shape.in.height}, shape.out, shape.window, {});
  resampler.start(shape.flip, {result.data(), stride});
  for (int32_t first = 0, rows = 0; first < need.height; first += rows) {
    rows = std::min(random.side(40), need.height - first);
    const uint8_t* from =
        carried.data() +
        (static_cast<size_t>(need.y + first) * width + static_cast<size_t>(need.x)) * kRgbxBytes;
    resampler.add({from, width * kRgbxBytes, {need.width, rows}}, first);
  }
  resampler.finish();
  std::vector<uint8_t> rows;
  for (size_t y = 0; y < static_cast<size_t>(shape.window.height); ++y) {
    const uint8_t* from = &result[y * stride];
    REQUIRE(from[row] == kGuard);
    REQUIRE(from[row + 1] == kGuard);
    rows.insert(rows.end(), from, from + row);
  }
  return rows;
}

// Three channels by the resampler of RGB, which has tests of its own.
std::vector<uint8_t> resized_rgb(const Case& shape, const std::vector<uint8_t>& rgbx) {
  Resampler resampler(*resample_kernels().back());
  resampler.plan(shape.filter, shape.in, shape.out, shape.window);
  const Rect need = resampler.needed();
  const size_t width = static_cast<size_t>(shape.in.width) * kRgbxBytes;
  const size_t stride = static_cast<size_t>(shape.window.width) * kRgbBytes;
  std::vector<uint8_t> pixels(stride * static_cast<size_t>(shape.window.height));
  resampler.run({rgbx.data() + static_cast<size_t>(need.y) * width + static_cast<size_t>(need.x) * kRgbxBytes,
                 width,
                 {need.width, need.height}},
                shape.flip, {pixels.data(), stride});
  return pixels;
}

TEST_CASE("L is resized as each channel of RGB") {
  Cases cases;
  for (int round = 0; round < 200; ++round) {
    const Case shape = cases.next();
    const auto grey = cases.bytes(static_cast<size_t>(shape.in.width * shape.in.height));
    std::vector<uint8_t> rgbx;
    for (const uint8_t value : grey) rgbx.insert(rgbx.end(), 4, value);
    rgbx.resize(rgbx.size() + kRgbxPadding);
    const auto rgb = resized_rgb(shape, rgbx);
    const auto result = resized(PixelMode::kL, shape, grey, cases);
    REQUIRE(result.size() * 3 == rgb.size());
    for (size_t i = 0; i < result.size(); ++i) REQUIRE(result[i] == rgb[3 * i]);
  }
}

TEST_CASE("RGBA is resized as colours multiplied with alpha, and divided by it again") {
  Cases cases;
  for (int round = 0; round < 200; ++round) {
    const Case shape = cases.next();
    const auto rgba = cases.bytes(static_cast<size_t>(shape.in.width * shape.in.height) * 4);
    const bool copies = shape.filter == Filter::kNearest || shape.in == shape.out;
    std::vector<uint8_t> colors = rgba, alpha = rgba;
    for (size_t at = 0; at < rgba.size(); at += 4) {
      for (size_t c = 0; c < 3; ++c) {
        // Rounded to the nearest; 255 is odd, so that there are no halves.
        if (!copies) colors[at + c] = static_cast<uint8_t>((2 * rgba[at + c] * rgba[at + 3] + 255) / 510);
        alpha[at + c] = rgba[at + 3];
      }
    }
    colors.resize(colors.size() + kRgbxPadding);
    alpha.resize(alpha.size() + kRgbxPadding);
    const auto shown = resized_rgb(shape, colors), weights = resized_rgb(shape, alpha);
    const auto result = resized(PixelMode::kRgba, shape, rgba, cases);
    for (size_t i = 0; i < result.size() / 4; ++i) {
      const int weight = weights[3 * i];
      REQUIRE(result[4 * i + 3] == weight);
      for (size_t c = 0; c < 3; ++c) {
        const int color = shown[3 * i + c];
        const bool as_is = copies || weight == 0;
        REQUIRE(result[4 * i + c] == (as_is ? color : std::min(255, 255 * color / weight)));
      }
    }
  }
}

double weight_of(Filter filter, double x) {
  x = std::fabs(x);
  const auto sinc = [](double t) { return t == 0.0 ? 1.0 : std::sin(t * M_PI) / (t * M_PI); };
  switch (filter) {
    case Filter::kBox:
      return x <= 0.5 ? 1.0 : 0.0;
    case Filter::kBilinear:
      return x < 1.0 ? 1.0 - x : 0.0;
    case Filter::kBicubic:
      if (x < 1.0) return (1.5 * x - 2.5) * x * x + 1.0;
      return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5 : 0.0;
    default:
      return x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0;
  }
}

// One line of numbers to another length, every output from every input within reach.
std::vector<double> line(Filter filter, const std::vector<double>& in, size_t out) {
  const double scale = static_cast<double>(in.size()) / static_cast<double>(out);
  const double stretch = std::max(1.0, scale);
  const double supports[] = {0.0, 0.5, 1.0, 2.0, 3.0};
  const double support = supports[static_cast<int>(filter)] * stretch;
  std::vector<double> values;
  for (size_t i = 0; i < out; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const auto first = static_cast<int>(std::max(0.0, center - support + 0.5));
    const auto last = static_cast<int>(std::min(static_cast<double>(in.size()), center + support + 0.5));
    double weights = 0.0, sum = 0.0;
    for (int k = first; k < last; ++k) weights += weight_of(filter, (k - center + 0.5) / stretch);
    for (int k = first; k < last; ++k) {
      sum += in[static_cast<size_t>(k)] * (weight_of(filter, (k - center + 0.5) / stretch) / weights);
    }
    values.push_back(std::clamp(std::floor(sum + 0.5), 0.0, 65535.0));
  }
  return values;
}

using Grid = std::vector<std::vector<double>>;

Grid turned(const Grid& rows) {
  Grid columns(rows.front().size(), std::vector<double>(rows.size()));
  for (size_t y = 0; y < rows.size(); ++y) {
    for (size_t x = 0; x < rows[y].size(); ++x) columns[x][y] = rows[y][x];
  }
  return columns;
}

Grid across(const Case& shape, Grid rows) {
  if (shape.in.width == shape.out.width) return rows;
  for (auto& row : rows) row = line(shape.filter, row, static_cast<size_t>(shape.out.width));
  return rows;
}

Grid down(const Case& shape, Grid rows) {
  if (shape.in.height == shape.out.height) return rows;
  rows = turned(rows);
  for (auto& row : rows) row = line(shape.filter, row, static_cast<size_t>(shape.out.height));
  return turned(rows);
}

TEST_CASE("16 bits are resized with sums of doubles, rounded after each pass") {
  Cases cases;
  size_t beside = 0, all = 0;
  for (int round = 0; round < 300; ++round) {
    const Case shape = cases.next();
    const auto bytes = cases.bytes(static_cast<size_t>(shape.in.width * shape.in.height) * 2);
    Grid rows(static_cast<size_t>(shape.in.height));
    for (size_t y = 0; y < rows.size(); ++y) {
      for (size_t x = 0; x < static_cast<size_t>(shape.in.width); ++x) {
        uint16_t value;
        std::memcpy(&value, &bytes[(y * static_cast<size_t>(shape.in.width) + x) * 2], 2);
        rows[y].push_back(value);
      }
    }
    if (shape.filter == Filter::kNearest) {
      Grid taken;
      for (int32_t y = 0; y < shape.out.height; ++y) {
        const auto& row =
            rows[static_cast<size_t>((y + 0.5) * (static_cast<double>(shape.in.height) / shape.out.height))];
        auto& to = taken.emplace_back();
        for (int32_t x = 0; x < shape.out.width; ++x) {
          to.push_back(
              row[static_cast<size_t>((x + 0.5) * (static_cast<double>(shape.in.width) / shape.out.width))]);
        }
      }
      rows = taken;
    } else {
      const int lost = shape.in.height - shape.out.height;
      const bool down_first =
          shape.in.width != shape.out.width && lost > 0 && lost > 2 * (shape.in.width - shape.out.width);
      rows = down_first ? across(shape, down(shape, rows)) : down(shape, across(shape, rows));
    }
    const auto result = resized(PixelMode::kI16, shape, bytes, cases);
    size_t at = 0;
    for (int32_t y = 0; y < shape.window.height; ++y) {
      for (int32_t x = 0; x < shape.window.width; ++x, at += 2, ++all) {
        uint16_t value;
        std::memcpy(&value, &result[at], 2);
        const int32_t from = shape.window.x + (shape.flip ? shape.window.width - 1 - x : x);
        const double expected = rows[static_cast<size_t>(shape.window.y + y)][static_cast<size_t>(from)];
        // The twin's weights may differ in their last bit, which matters where a sum is nearly a half.
        REQUIRE(std::fabs(value - expected) <= 1.0);
        beside += value != expected ? 1 : 0;
      }
    }
  }
  CHECK(beside * 1000 <= all);
}

TEST_CASE("16 bits are not decoded at a smaller size") {
  ModeResampler resampler(PixelMode::kI16);
  CHECK_THROWS_AS(resampler.plan_part(Filter::kBox, {0, 0, 8, 8}, {4, 4}, {0, 0, 4, 4}, {2, true}), Error);
}

}  // namespace
}  // namespace stoker

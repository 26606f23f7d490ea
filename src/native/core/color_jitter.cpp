#include "core/color_jitter.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace stoker {
namespace {

using Lookup = std::array<uint8_t, 256>;

uint8_t cut(float value) {
  return static_cast<uint8_t>(static_cast<int>(std::min(std::max(value, 0.0F), 255.0F)));
}

// `from` + share * (to - from), in the order of operations that decides the last bit.
uint8_t blend(int from, int to, float share) {
  return cut(static_cast<float>(from) + share * static_cast<float>(to - from));
}

// ITU-R 601 luma as Pillow's convert("L") has it, in 16.16 fixed point.
uint8_t luma(const uint8_t* rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595U + rgb[1] * 38470U + rgb[2] * 7471U + 0x8000U) >> 16);
}

template <typename Change>
void each_pixel(RgbSlot rows, Extent size, const Change& change) {
  for (int32_t y = 0; y < size.height; ++y) {
    uint8_t* pixel = rows.row(y);
    for (int32_t x = 0; x < size.width; ++x, pixel += kRgbBytes) change(pixel);
  }
}

void look_up(const Lookup& table, RgbSlot rows, Extent size) {
  each_pixel(rows, size, [&](uint8_t* pixel) {
    for (size_t c = 0; c < kRgbBytes; ++c) pixel[c] = table[pixel[c]];
  });
}

void blend_with(int grey, float share, RgbSlot rows, Extent size) {
  Lookup table;
  for (int value = 0; value < 256; ++value) table[static_cast<size_t>(value)] = blend(grey, value, share);
  look_up(table, rows, size);
}

int mean_luma(RgbSlot rows, Extent size) {
  uint64_t sum = 0;
  each_pixel(rows, size, [&](const uint8_t* pixel) { sum += luma(pixel); });
  const double pixels = static_cast<double>(size.width) * size.height;
  return static_cast<int>(static_cast<double>(sum) / pixels + 0.5);
}

void saturate(float share, RgbSlot rows, Extent size) {
  each_pixel(rows, size, [share](uint8_t* pixel) {
    const int grey = luma(pixel);
    for (size_t c = 0; c < kRgbBytes; ++c) pixel[c] = blend(grey, pixel[c], share);
  });
}

// Hue and saturation, by what they depend on. `span` is the largest of a pixel's values less the smallest,
// `rest` the largest less the middle one, and a sixth of the circle is named by which value is largest and
// which smallest.
struct HsvTables {
  std::array<std::array<std::array<uint8_t, 256>, 256>, 6> hue;  // [sixth][span][rest]
  std::array<std::array<uint8_t, 256>, 256> saturation;          // [largest][span]

  HsvTables() {
    for (size_t span = 1; span < 256; ++span) {
      for (size_t rest = 0; rest <= span; ++rest) {
        const float part = static_cast<float>(rest) / static_cast<float>(span);
        hue[0][span][rest] = of_circle(1.0F - part);        // red, then green, then blue
        hue[1][span][rest] = of_circle(part - 1.0F);        // red, blue, green
        hue[2][span][rest] = of_circle(2.0 + part - 1.0);   // green, red, blue
        hue[3][span][rest] = of_circle(2.0 + 1.0F - part);  // green, blue, red
        hue[4][span][rest] = of_circle(4.0 + 1.0F - part);  // blue, red, green
        hue[5][span][rest] = of_circle(4.0 + part - 1.0);   // blue, green, red
      }
      for (size_t largest = span; largest < 256; ++largest) {
        const float share = static_cast<float>(span) / static_cast<float>(largest);
        saturation[largest][span] = static_cast<uint8_t>(share * 255.0);
      }
    }
  }

  // From sixths of the circle to 0..255.
  static uint8_t of_circle(double sixths) {
    const auto rounded = static_cast<float>(sixths);
    const auto turn = static_cast<float>(std::fmod(rounded / 6.0 + 1.0, 1.0));
    return static_cast<uint8_t>(turn * 255.0);
  }
};

const HsvTables& hsv_tables() {
  static const auto tables = std::make_unique<const HsvTables>();
  return *tables;
}

// The three values of a colour of full brightness that are not the largest, by hue: see to_rgb().
struct Sector {
  int sixth;
  float within;
};

Sector sector_of(uint8_t hue) {
  const double sixths = static_cast<float>(hue) * 6.0 / 255.0;
  const auto sixth = static_cast<int>(sixths);
  return {sixth % 6, static_cast<float>(sixths - static_cast<float>(sixth))};
}

uint8_t nearest(double value) {
  return static_cast<uint8_t>(value + 0.5);  // 0..255: halves away from zero
}

void to_rgb(const Sector& hue, uint8_t saturation, uint8_t value, uint8_t* rgb) {
  const auto full = static_cast<float>(value);
  const auto share = static_cast<float>(static_cast<float>(saturation) / 255.0);
  const uint8_t low = nearest(full * (1.0 - share));
  const uint8_t falling = nearest(full * (1.0 - share * hue.within));
  const uint8_t rising = nearest(full * (1.0 - share * (1.0 - hue.within)));
  const uint8_t sixths[6][kRgbBytes] = {{value, rising, low},  {falling, value, low}, {low, value, rising},
                                        {low, falling, value}, {rising, low, value},  {value, low, falling}};
  std::copy_n(sixths[hue.sixth], kRgbBytes, rgb);
}

void shift_hue(double factor, RgbSlot rows, Extent size) {
  const HsvTables& tables = hsv_tables();
  const auto shift = static_cast<uint8_t>(static_cast<int>(factor * 255));
  std::array<Sector, 256> shifted;
  for (size_t hue = 0; hue < 256; ++hue) shifted[hue] = sector_of(static_cast<uint8_t>(hue + shift));
  each_pixel(rows, size, [&](uint8_t* pixel) {
    const uint8_t r = pixel[0], g = pixel[1], b = pixel[2];
    const uint8_t largest = std::max({r, g, b}), smallest = std::min({r, g, b});
    const auto span = static_cast<size_t>(largest - smallest);
    if (span == 0) return;  // grey has no hue, and stays as it is
    const auto rest = static_cast<size_t>(largest - (r + g + b - largest - smallest));
    const size_t sixth = r == largest   ? (b == smallest ? 0 : 1)
                         : g == largest ? (b == smallest ? 2 : 3)
                                        : (g == smallest ? 4 : 5);
    to_rgb(shifted[tables.hue[sixth][span][rest]], tables.saturation[largest][span], largest, pixel);
  });
}

// 0..bound-1, from one word.
size_t pick(uint32_t word, size_t bound) {
  return static_cast<size_t>((uint64_t{word} * bound) >> 32);
}

}  // namespace

bool JitterSpec::on() const {
  return std::ranges::any_of(ranges, &Range::on);
}

JitterPlan plan_jitter(const JitterSpec& spec, const SampleRandom& random) {
  JitterPlan plan;
  const auto shares = random.draw(RandomOp::kColor, 0), places = random.draw(RandomOp::kColor, 1);
  for (size_t op = 0; op < kColorOps; ++op) {
    const auto& range = spec.ranges[op];
    plan.factors[op] = range.low + (range.high - range.low) * unit(shares[op]);
    if (range.on) plan.order[plan.count++] = static_cast<ColorOp>(op);
  }
  for (size_t last = plan.count; last > 1; --last) {
    std::swap(plan.order[last - 1], plan.order[pick(places[last - 1], last)]);
  }
  return plan;
}

void apply_jitter(const JitterPlan& plan, RgbSlot rows, Extent size) {
  for (size_t i = 0; i < plan.count; ++i) {
    const double factor = plan.factors[static_cast<size_t>(plan.order[i])];
    const auto share = static_cast<float>(factor);
    switch (plan.order[i]) {
      case ColorOp::kBrightness:
        blend_with(0, share, rows, size);
        break;
      case ColorOp::kContrast:
        blend_with(mean_luma(rows, size), share, rows, size);
        break;
      case ColorOp::kSaturation:
        saturate(share, rows, size);
        break;
      case ColorOp::kHue:
        shift_hue(factor, rows, size);
        break;
    }
  }
}

}  // namespace stoker

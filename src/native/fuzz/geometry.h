// Settings as nobody has checked them: mostly such as can be carried out, and at times any number at all.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "core/transforms/transform.h"
#include "fuzz/input.h"

namespace stoker::fuzz {

// 0 .. `usual` - 1 of four times in five.
inline int32_t some_place(Input& input, int32_t usual) {
  constexpr auto kMost = std::numeric_limits<int32_t>::max();
  constexpr std::array kOdd{0, -1, kMostSide, kMostSide + 1, kMost, -kMost - 1, 65500, 1 << 30};
  const uint8_t choice = input.byte();
  return choice < 51 ? kOdd[choice % kOdd.size()] : choice % usual;
}

// 1 .. `usual` of four times in five.
inline int32_t some_side(Input& input, int32_t usual) {
  const int32_t place = some_place(input, usual);
  return place >= 0 && place < usual ? place + 1 : place;
}

// low .. high of four times in five.
inline double some_number(Input& input, double low, double high) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  constexpr std::array kOdd{kNan, kInfinite, -kInfinite, 0.0, -0.0, -1.0, 1e300, -1e300, 5e-324, 101.0};
  const uint8_t choice = input.byte();
  return choice < 51 ? kOdd[choice % kOdd.size()] : low + (high - low) * (choice - 51) / 204;
}

// Takes 32 choices.
inline TransformSpec some_transform(Input& input) {
  Input choices = input.choices(32);
  TransformSpec transform;
  transform.kind = static_cast<TransformKind>(choices.byte() % 6);
  transform.out = {some_side(choices, 40), some_side(choices, 40)};
  transform.filter = static_cast<Filter>(choices.byte() % 5);
  transform.hflip = some_number(choices, 0.0, 1.0);
  const auto bounds = [&](double least, double most, double& low, double& high) {
    low = some_number(choices, least, most), high = some_number(choices, least, most);
    if (choices.byte() % 8 != 0 && high < low) std::swap(low, high);
  };
  bounds(0.01, 1.0, transform.scale_min, transform.scale_max);
  bounds(0.5, 2.0, transform.ratio_min, transform.ratio_max);
  bounds(-0.7, 0.7, transform.log_ratio_min, transform.log_ratio_max);
  const int32_t largest = std::max(transform.out.width, transform.out.height);
  transform.resize =
      largest > 0 && largest < kMostSide ? largest + some_place(choices, 8) % kMostSide : largest;
  const uint8_t jitter = choices.byte();
  for (size_t op = 0; op < kColorOps; ++op) {
    const bool hue = static_cast<ColorOp>(op) == ColorOp::kHue;
    auto& range = transform.jitter.ranges[op];
    range.on = jitter < 64 && (jitter >> op & 1) != 0;
    if (range.on) bounds(hue ? -0.5 : 0.0, hue ? 0.5 : 2.0, range.low, range.high);
  }
  return transform;
}

inline ObjectBox some_box(Input& input) {
  const auto edge = [&] { return static_cast<float>(some_number(input, -0.25, 1.25)); };
  const float xmin = edge(), ymin = edge();
  return {xmin, ymin, edge(), edge()};
}

}  // namespace stoker::fuzz

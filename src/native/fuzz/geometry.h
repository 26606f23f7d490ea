// Settings as nobody has checked them: mostly such as can be carried out, and at times any number at all.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/transforms/transform.h"
#include "fuzz/input.h"
#include "fuzz/invariant.h"

namespace stoker::fuzz {

// 0 .. `usual` - 1 of four times in five.
inline int32_t some_coordinate(Input& input, int32_t usual) {
  constexpr auto kMost = std::numeric_limits<int32_t>::max();
  constexpr std::array kOdd{0, -1, kMostSide, kMostSide + 1, kMost, -kMost - 1, 65500, 1 << 30};
  const uint8_t choice = input.byte();
  return choice < 51 ? kOdd[choice % kOdd.size()] : choice % usual;
}

// 1 .. `usual` of four times in five.
inline int32_t some_side(Input& input, int32_t usual) {
  const int32_t coordinate = some_coordinate(input, usual);
  return coordinate >= 0 && coordinate < usual ? coordinate + 1 : coordinate;
}

// low .. high of four times in five.
inline double some_number(Input& input, double low, double high) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  constexpr std::array kOdd{kNan, kInfinite, -kInfinite, 0.0, -0.0, -1.0, 1e300, -1e300, 5e-324, 101.0};
  const uint8_t choice = input.byte();
  return choice < 51 ? kOdd[choice % kOdd.size()] : low + (high - low) * (choice - 51) / 204;
}

// Takes 32 choices. Nothing where the settings are refused.
inline std::optional<TransformSpec> some_transform(Input& input) {
  constexpr std::array kNames{"RandomResizedCrop", "CenterCrop", "Resize",
                              "TopLeft",           "RawTensor",  "ObjectCrops"};
  constexpr std::array kFilters{"nearest", "box", "bilinear", "bicubic", "lanczos"};
  constexpr std::array kColors{"brightness", "contrast", "saturation", "hue"};
  Input choices = input.choices(32);
  const std::string name = kNames[choices.byte() % kNames.size()];
  const int32_t width = some_side(choices, 40), height = some_side(choices, 40);
  SettingValues settings;
  const auto set = [](SettingValues& values, const char* key, std::vector<double> numbers) {
    values.insert({key, std::move(numbers)});
  };
  set(settings, "size", {static_cast<double>(height), static_cast<double>(width)});
  settings.insert({"filter", kFilters[choices.byte() % kFilters.size()]});
  set(settings, "hflip", {some_number(choices, 0.0, 1.0)});
  const auto bounds = [&](double least, double most) {
    double low = some_number(choices, least, most), high = some_number(choices, least, most);
    if (choices.byte() % 8 != 0 && high < low) std::swap(low, high);
    return std::vector<double>{low, high};
  };
  const auto scale = bounds(0.01, 1.0), ratio = bounds(0.5, 2.0);
  const int32_t largest = std::max(width, height);
  const int32_t resize =
      largest > 0 && largest < kMostSide ? largest + some_coordinate(choices, 8) % kMostSide : largest;
  if (name == "RandomResizedCrop") set(settings, "scale", scale), set(settings, "ratio", ratio);
  if (name == "CenterCrop") set(settings, "resize", {static_cast<double>(resize)});
  std::vector<OperationSettings> operations;
  const uint8_t jitter = choices.byte();
  if (jitter < 64 && jitter % 16 != 0) {
    SettingValues colors;
    for (size_t i = 0; i < kColors.size(); ++i) {
      const bool hue = i + 1 == kColors.size(), on = (jitter >> i & 1) != 0;
      set(colors, kColors[i], on ? bounds(hue ? -0.5 : 0.0, hue ? 0.5 : 2.0) : std::vector<double>{0.0});
    }
    operations.emplace_back("ColorJitter", std::move(colors));
  }
  std::optional<TransformSpec> transform;
  succeeds([&] { transform.emplace(OperationSettings(name, settings), operations); });
  return transform;
}

inline ObjectBox some_box(Input& input) {
  const auto edge = [&] { return static_cast<float>(some_number(input, -0.25, 1.25)); };
  const float xmin = edge(), ymin = edge();
  return {xmin, ymin, edge(), edge()};
}

}  // namespace stoker::fuzz

// Transforms for tests: settings that are not given have the values that stand here.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/transforms/transform.h"

namespace stoker::tests {

inline OperationSettings settings(const std::string& name, Extent out, SettingValues values = {}) {
  const auto numbers = [](std::vector<double> list) { return SettingValue(std::move(list)); };
  values.insert({"size", numbers({static_cast<double>(out.height), static_cast<double>(out.width)})});
  if (name != "TopLeft" && name != "RawTensor") values.insert({"filter", "bilinear"});
  if (name == "CenterCrop") values.insert({"resize", numbers({256})});
  if (name == "RandomResizedCrop") {
    values.insert({{"scale", numbers({0.08, 1})}, {"ratio", numbers({0.75, 1.25})}});
  }
  return {name, std::move(values)};
}

inline TransformSpec transform(const std::string& name, Extent out, SettingValues values = {},
                               std::vector<OperationSettings> operations = {}) {
  return TransformSpec(settings(name, out, std::move(values)), std::move(operations));
}

using Numbers = std::vector<double>;

inline OperationSettings jitter(Numbers brightness, Numbers contrast = {0}, Numbers saturation = {0},
                                Numbers hue = {0}) {
  return {"ColorJitter",
          {{"brightness", std::move(brightness)},
           {"contrast", std::move(contrast)},
           {"saturation", std::move(saturation)},
           {"hue", std::move(hue)}}};
}

}  // namespace stoker::tests

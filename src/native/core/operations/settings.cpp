#include "core/operations/settings.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/errors.h"
#include "core/resize/filter_names.h"

namespace stoker {

void OperationSettings::refuse(const std::string& what) const {
  throw Error(ErrorCode::kBadArgument, operation_ + ": " + what);
}

void OperationSettings::refuse_others() const {
  for (const auto& [name, value] : values_) {
    if (!read_.contains(name)) refuse("there is no setting " + name);
  }
}

const SettingValue& OperationSettings::value(const std::string& name) {
  const auto found = values_.find(name);
  if (found == values_.end()) refuse(name + " is missing");
  read_.insert(name);
  return found->second;
}

const std::vector<double>& OperationSettings::numbers(const std::string& name, size_t least, size_t most) {
  const auto* numbers = std::get_if<std::vector<double>>(&value(name));
  if (numbers == nullptr || numbers->size() < least || numbers->size() > most) {
    refuse(name + " must be " + (least == most ? "" : std::to_string(least) + " or ") + std::to_string(most) +
           (most == 1 ? " number" : " numbers"));
  }
  return *numbers;
}

double OperationSettings::number(const std::string& name, double least, double most) {
  const double number = numbers(name, 1, 1)[0];
  if (least <= number && number <= most) return number;  // never of what is not a number
  refuse(name + " is " + std::to_string(number) + "; it must be from " + std::to_string(least) + " to " +
         std::to_string(most));
}

int32_t OperationSettings::whole(const std::string& name, int32_t least, int32_t most) {
  const double value = number(name, least, most);
  if (value != std::floor(value)) refuse(name + " is " + std::to_string(value) + ", not a whole number");
  return static_cast<int32_t>(value);
}

Bounds OperationSettings::bounds(const std::string& name, double least, double most) {
  const auto& pair = numbers(name, 2, 2);
  const Bounds bounds{pair[0], pair[1]};
  if (least <= bounds.low && bounds.low <= bounds.high && bounds.high <= most) return bounds;
  refuse(name + " is from " + std::to_string(bounds.low) + " to " + std::to_string(bounds.high) +
         "; it must be two numbers, the smallest and the largest, from " + std::to_string(least) + " to " +
         std::to_string(most));
}

Bounds OperationSettings::bounds_around(const std::string& name, double neutral, double least, double most) {
  if (numbers(name, 1, 2).size() == 2) return bounds(name, least, most);
  const double far = number(name, 0.0, most - neutral);
  return {std::max(least, neutral - far), neutral + far};
}

Extent OperationSettings::size(const std::string& name) {
  const auto& sides = numbers(name, 1, 2);
  for (const double side : sides) {
    if (!(side >= 1.0 && side <= kMostSide && side == std::floor(side))) {
      refuse(name + " has a side of " + std::to_string(side) + " pixels; each must be 1.." +
             std::to_string(kMostSide));
    }
  }
  return {static_cast<int32_t>(sides.back()), static_cast<int32_t>(sides.front())};
}

Filter OperationSettings::filter(const std::string& name) {
  const auto* word = std::get_if<std::string>(&value(name));
  if (word == nullptr) refuse(name + " must be the name of a filter");
  return filter_named(*word);
}

}  // namespace stoker

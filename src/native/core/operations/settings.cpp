#include "core/operations/settings.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/errors.h"

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
  const auto entry = values_.find(name);
  if (entry == values_.end()) refuse(name + " is missing");
  read_.insert(name);
  return entry->second;
}

const std::vector<double>& OperationSettings::numbers(const std::string& name, size_t fewest, size_t most,
                                                      double low, double high) {
  const auto& numbers = value(name).numbers;
  if (numbers.size() >= fewest && numbers.size() <= most &&
      std::ranges::all_of(numbers, [&](double number) { return low <= number && number <= high; })) {
    return numbers;  // of which each is a number
  }
  refuse(name + " must be " + (fewest == most ? "" : std::to_string(fewest) + " or ") + std::to_string(most) +
         " numbers from " + std::to_string(low) + " to " + std::to_string(high));
}

int32_t OperationSettings::whole(const std::string& name, int32_t least, int32_t most) {
  const double value = number(name, least, most);
  if (value != std::floor(value)) refuse(name + " is " + std::to_string(value) + ", not a whole number");
  return static_cast<int32_t>(value);
}

Bounds OperationSettings::bounds(const std::string& name, double least, double most) {
  const auto& pair = numbers(name, 2, 2, least, most);
  if (pair[0] > pair[1]) refuse(name + " must be the smallest and the largest number, in this order");
  return {pair[0], pair[1]};
}

Bounds OperationSettings::bounds_around(const std::string& name, double neutral, double least, double most) {
  if (numbers(name, 1, 2, least, most).size() == 2) return bounds(name, least, most);
  const double distance = number(name, 0.0, most - neutral);
  return {std::max(least, neutral - distance), neutral + distance};
}

Extent OperationSettings::size(const std::string& name) {
  const auto& sides = numbers(name, 1, 2, 1, kMostSide);
  const Extent size{static_cast<int32_t>(sides.back()), static_cast<int32_t>(sides.front())};
  if (size.width == sides.back() && size.height == sides.front()) return size;
  refuse(name + " has a side that is not a whole number of pixels");
}

Filter OperationSettings::filter(const std::string& name) {
  const auto& word = value(name).word;
  if (word.empty()) refuse(name + " must be the name of a filter");
  return filter_named(word);
}

}  // namespace stoker

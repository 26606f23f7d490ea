// The settings of one operation by their names, as the class that declares it gives them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/pixels.h"
#include "core/resize/resample_plan.h"

namespace stoker {

// A word, or numbers: one, a pair, or 0 and 1 for false and true; the other is empty. No std::variant: that
// of libstdc++ 12 destroys what is not there where a copy finds no memory.
struct SettingValue {
  SettingValue(std::string given) : word(std::move(given)) {}
  SettingValue(const char* given) : word(given) {}
  SettingValue(std::vector<double> given) : numbers(std::move(given)) {}

  std::string word;
  std::vector<double> numbers;
};
using SettingValues = std::map<std::string, SettingValue>;

struct Bounds {
  double low = 0.0;
  double high = 0.0;

  double at(double share) const { return low + (high - low) * share; }
};

// Read once, when a loader is made. Whatever reads a setting throws kBadArgument where there is no such one,
// where it is of another kind or not a number, and where it is out of range.
class OperationSettings {
 public:
  OperationSettings(std::string operation, SettingValues values)
      : operation_(std::move(operation)), values_(std::move(values)) {}

  const std::string& operation() const { return operation_; }
  bool has(const std::string& name) const { return values_.contains(name); }

  double number(const std::string& name, double least, double most) {
    return numbers(name, 1, 1, least, most)[0];
  }
  int32_t whole(const std::string& name, int32_t least, int32_t most);
  // A smallest and a largest number.
  Bounds bounds(const std::string& name, double least, double most);
  // The same, where one number stands for the bounds at this distance around `neutral`.
  Bounds bounds_around(const std::string& name, double neutral, double least, double most);
  // One number for both sides, or height and width.
  Extent size(const std::string& name);
  Filter filter(const std::string& name);

  // Throws kBadArgument for settings that have not been read: the operation does not know them.
  void refuse_others() const;
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  const SettingValue& value(const std::string& name);
  const std::vector<double>& numbers(const std::string& name, size_t fewest, size_t most, double low,
                                     double high);

  std::string operation_;
  SettingValues values_;
  std::set<std::string> read_;
};

}  // namespace stoker

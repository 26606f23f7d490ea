// Features of an Example as a caller of Python gave them.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "core/examples/example.h"

namespace stoker::bind {

namespace nb = nanobind;

struct GivenFeature {
  nb::str key;
  nb::str kind;
  nb::tuple values;
};

// Spans and views into the caller's objects stay good as long as this lives: strings and bytes never change,
// and the values are a tuple of our own, so that no code of the caller which runs during a conversion can
// take one away. Needs the GIL to begin and to end.
class GivenFeatures {
 public:
  // Throws TypeError for what is not `stoker.types.Features`, and kBadArgument for numbers that do not fit.
  explicit GivenFeatures(const nb::dict& features);

  const std::vector<NamedValues>& values() const { return values_; }

 private:
  std::vector<GivenFeature> kept_;
  std::vector<NamedValues> values_;
};

}  // namespace stoker::bind

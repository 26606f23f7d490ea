// The class in a record: an integer, or a one-hot list.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/examples/example.h"

namespace stoker {

enum class LabelEncoding {
  kId,      // one int64, as it is
  kOneHot,  // int64 values or one bytes value, zeros and at most a single 1
};

// Where a record holds its class.
struct LabelKeys {
  std::string key;  // empty: every label is -1
  LabelEncoding encoding = LabelEncoding::kId;
  int64_t base = 0;  // kOneHot: what is added to the position of the 1
};

// The class that a feature holds; -1 for a one-hot list of zeros. `numbers` is scratch memory. Throws
// kBadExample when the feature is absent, empty or of another kind, or not one-hot where it should be.
int64_t label_of(const FeatureView& view, const LabelKeys& keys, std::vector<int64_t>& numbers);

}  // namespace stoker

// The fast path of find_features(), for a tf.train.Example that is laid out as writers lay it out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/examples/example.h"

namespace stoker {

// A feature to look for, and its values. It has a single value of kind bytes or int64; as a list, a single
// one of kind bytes, or any number of others.
struct FastFeature {
  std::string_view key;
  bool list = false;
  FeatureKind kind = FeatureKind::kNone;  // kNone: the key is not there
  std::span<const uint8_t> bytes{};       // the value, or the packed numbers; borrows from the payload
  int64_t number = 0;                     // not of a list
};

// Does what find_features() and first_bytes() or first_int64() do, in one step a feature. It needs every
// message in one piece, its fields in order with nothing unknown between them, packed numbers, and values as
// FastFeature says. False for any other payload, of which nothing is known then. The int64 numbers of a list
// are not checked.
bool find_features_fast(std::span<const uint8_t> payload, std::span<FastFeature> wanted);

// Reads the packed int64 numbers of a list. False if they are damaged.
bool unpack(std::span<const uint8_t> packed, std::vector<int64_t>& numbers);

}  // namespace stoker

// A quick look into a tf.train.Example that is laid out as writers lay it out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/examples/example.h"

namespace stoker {

// A feature to look for that has a single value, and what was found.
struct GlancedFeature {
  std::string_view key;
  FeatureKind kind = FeatureKind::kNone;  // kBytes or kInt64; kNone: the key is not there
  std::span<const uint8_t> bytes{};       // borrows from the payload
  int64_t number = 0;
};

// Does what find_features() and first_bytes() or first_int64() do, in one step a feature, if it can: every
// message in one piece, its fields in order and nothing unknown between them, and of those looked for one
// bytes or int64 value each. False, whatever else, for any other payload; then nothing is known of it.
bool glance(std::span<const uint8_t> payload, std::span<GlancedFeature> wanted);

}  // namespace stoker

// Names of the ways to decode, for every binding that takes one.
#pragma once

#include <string>

#include "core/base/errors.h"
#include "core/jpeg/jpeg.h"

namespace stoker::bind {

inline DecodeMode decode_mode_named(const std::string& name) {
  if (name == "exact") return DecodeMode::kExact;
  if (name == "fast") return DecodeMode::kFast;
  throw Error(ErrorCode::kBadArgument, "decode is '" + name + "'; it must be 'exact' or 'fast'");
}

}  // namespace stoker::bind

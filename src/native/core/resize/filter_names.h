// What resampling filters are called.
#pragma once

#include <string>

#include "core/resize/resample_plan.h"

namespace stoker {

// Throws kBadArgument for another name.
Filter filter_named(const std::string& name);

}  // namespace stoker

// What a target demands: anything else ends the run, and libFuzzer keeps the input.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "core/base/errors.h"

namespace stoker::fuzz {

inline void require(bool holds, int line = __builtin_LINE(), const char* file = __builtin_FILE()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%d: this invariant is broken\n", file, line);
  std::abort();
}

// Calls `what`; false where it threw an error of the core. Any other exception ends the run.
template <typename What>
bool succeeds(const What& what) {
  try {
    what();
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace stoker::fuzz

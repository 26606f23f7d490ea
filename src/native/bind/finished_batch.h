// A batch between the engine and Python.
#pragma once

#include <vector>

#include "core/engine/engine.h"

namespace stoker::bind {

struct FinishedBatch {
  Batch batch;
  std::vector<ViewSpec> views;
  PixelFormat format;
};

}  // namespace stoker::bind

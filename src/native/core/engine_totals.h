// What an engine has done.
#pragma once

#include <cstddef>

#include "core/consumer_clock.h"
#include "core/stage_clock.h"
#include "core/worker_clock.h"

namespace stoker {

// What was done since the engine began.
struct EngineTotals {
  size_t threads = 0;
  StageTotals stages;
  WorkerTotals workers;
  ConsumerTotals consumer;
};

}  // namespace stoker

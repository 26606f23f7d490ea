// What an engine has done.
#pragma once

#include <cstddef>

#include "core/clocks/consumer_clock.h"
#include "core/clocks/stage_clock.h"
#include "core/clocks/worker_clock.h"

namespace stoker {

// What was done since the engine began.
struct EngineTotals {
  size_t threads = 0;
  StageTotals stages;
  WorkerTotals workers;
  ConsumerTotals consumer;
};

}  // namespace stoker

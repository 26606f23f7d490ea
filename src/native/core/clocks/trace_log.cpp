#include "core/clocks/trace_log.h"

#include <new>
#include <utility>

namespace stoker {

TraceLog::TraceLog(size_t threads) {
  for (size_t i = 0; i < threads; ++i) lanes_.push_back(std::make_unique<Lane>());
}

void TraceLog::start(size_t most) {
  most_.store(most, std::memory_order_relaxed);
  on_.store(true, std::memory_order_relaxed);
}

void TraceLog::add(const TraceEvent& event) {
  Lane& lane = *lanes_[event.thread];
  const std::lock_guard lock(lane.mutex);
  if (lane.events.size() < most_.load(std::memory_order_relaxed)) {
    try {
      lane.events.push_back(event);
      return;
    } catch (const std::bad_alloc&) {  // what is traced goes on
    }
  }
  ++lane.lost;
}

TraceLog::Taken TraceLog::take() {
  Taken taken;
  for (const auto& lane : lanes_) {
    std::vector<TraceEvent> events;
    {
      const std::lock_guard lock(lane->mutex);
      events.swap(lane->events);
      taken.lost += std::exchange(lane->lost, 0);
    }
    taken.events.insert(taken.events.end(), events.begin(), events.end());
  }
  return taken;
}

}  // namespace stoker

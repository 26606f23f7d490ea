// What threads did when, kept until it is taken.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace stoker {

// Times are nanoseconds of the steady clock.
struct TraceEvent {
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  uint64_t index = 0;   // of the sample, or a number that belongs to the event
  uint32_t batch = 0;   // counted from 0 in the order in which they were submitted
  uint16_t thread = 0;  // who it was
  uint16_t what = 0;
};

// Each thread writes to a lane of its own; any thread may take.
class TraceLog {
 public:
  explicit TraceLog(size_t threads);

  // From now on keeps up to `most` events of each thread; what comes when these are not taken in time is
  // lost.
  void start(size_t most);
  void stop() { on_.store(false, std::memory_order_relaxed); }
  bool on() const { return on_.load(std::memory_order_relaxed); }

  // The thread of the event is its lane. Without memory for it, it is lost.
  void add(const TraceEvent& event);

  struct Taken {
    std::vector<TraceEvent> events;  // of each thread in order, one thread after the other
    uint64_t lost = 0;               // since the last take
  };
  Taken take();

 private:
  struct Lane {
    std::mutex mutex;
    std::vector<TraceEvent> events;
    uint64_t lost = 0;
  };

  std::atomic<bool> on_{false};
  std::atomic<size_t> most_{0};
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace stoker

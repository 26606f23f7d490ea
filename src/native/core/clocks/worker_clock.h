// How long a thread of a pool has had work, and how much of a CPU it used.
#pragma once

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <optional>

namespace stoker {

struct WorkerTotals {
  uint64_t busy_ns = 0;
  uint64_t idle_ns = 0;               // without work
  std::optional<uint64_t> cpu_ns{0};  // as the system counts it; nothing where it cannot say

  WorkerTotals& operator+=(const WorkerTotals& other);
};

// begin(), rest(), wake() and end() are called by the thread itself, in this order; totals() by any. On a
// cache line of its own.
class alignas(64) WorkerClock {
 public:
  void begin();
  void rest();  // out of work
  void wake();  // there is some again
  void end();

  WorkerTotals totals() const;

 private:
  void add_to_idle(int64_t sign);
  std::optional<uint64_t> cpu_now() const;

  using Counter = std::atomic<uint64_t>;
  Counter begun_{0}, ended_{0};   // steady nanoseconds; 0: not
  std::atomic<int64_t> idle_{0};  // while it rests less by the time at which the rest began, and so below 0
  std::atomic<uint32_t> writes_{0};  // begun and ended, of idle_: odd while the clock is looked at for it
  Counter cpu_{0};                   // when it ended
  std::atomic<bool> has_cpu_{false};
  std::atomic<clockid_t> cpu_clock_{};
};

}  // namespace stoker

// What the consumer of batches waits for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/clocks/trace_log.h"

namespace stoker {

struct ConsumerTotals {
  uint64_t batches = 0;  // handed out
  uint64_t samples = 0;  // in them
  uint64_t ready = 0;    // finished batches that were there when the consumer asked, summed over its requests
  uint64_t wait_ns = 0;  // between asking and having
  uint64_t handover_ns = 0;  // the part of it in which the batch was there, but the consumer could not run
  uint64_t consume_ns = 0;   // between having a batch and asking for the next
};

// Events of the consumer, behind those of stages.
enum class ConsumerEvent : uint16_t { kWait = 100, kHandover = 101, kConsume = 102 };

// Written by the thread that takes the batches, read by any.
class ConsumerClock {
 public:
  // Writes to `log`, too, as events of `thread`, whenever that is on.
  ConsumerClock(TraceLog& log, uint16_t thread) : log_(log), thread_(thread) {}

  // The consumer asks for a batch, `ready` of which are finished.
  void asked(uint64_t ready);
  // The batch is there.
  void came();
  // The consumer has it, and goes on.
  void given(uint64_t samples);
  // The time until the next request does not count: the consumer begins another epoch.
  void rest() { given_ = 0; }

  ConsumerTotals totals() const;

 private:
  using Counter = std::atomic<uint64_t>;

  void note(ConsumerEvent what, uint64_t begin, uint64_t end) const;

  TraceLog& log_;
  uint16_t thread_;
  uint32_t batch_ = 0;
  uint64_t asked_ = 0, came_ = 0, given_ = 0;  // steady nanoseconds; 0: not yet
  uint64_t ready_when_asked_ = 0;
  Counter batches_{0}, samples_{0}, ready_{0}, wait_{0}, handover_{0}, consume_{0};
};

}  // namespace stoker

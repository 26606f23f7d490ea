#include "core/clocks/consumer_clock.h"

#include "core/clocks/stage_clock.h"

namespace stoker {

void ConsumerClock::asked(uint64_t ready) {
  asked_ = came_ = steady_nanoseconds();
  ready_when_asked_ = ready;
  ready_.fetch_add(ready, std::memory_order_relaxed);
  if (given_ == 0) return;
  consume_.fetch_add(asked_ - given_, std::memory_order_relaxed);
  note(ConsumerEvent::kConsume, given_, asked_);
}

void ConsumerClock::came() {
  came_ = steady_nanoseconds();
}

void ConsumerClock::given(uint64_t samples) {
  given_ = steady_nanoseconds();
  wait_.fetch_add(given_ - asked_, std::memory_order_relaxed);
  handover_.fetch_add(given_ - came_, std::memory_order_relaxed);
  samples_.fetch_add(samples, std::memory_order_relaxed);
  batches_.fetch_add(1, std::memory_order_relaxed);
  note(ConsumerEvent::kWait, asked_, came_);
  note(ConsumerEvent::kHandover, came_, given_);
  ++batch_;
}

void ConsumerClock::note(ConsumerEvent what, uint64_t begin, uint64_t end) const {
  if (!log_.on()) return;
  log_.add({.begin_ns = begin,
            .end_ns = end,
            .index = ready_when_asked_,
            .batch = batch_,
            .thread = thread_,
            .what = static_cast<uint16_t>(what)});
}

ConsumerTotals ConsumerClock::totals() const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  return {.batches = batches_.load(kRelaxed),
          .samples = samples_.load(kRelaxed),
          .ready = ready_.load(kRelaxed),
          .wait_ns = wait_.load(kRelaxed),
          .handover_ns = handover_.load(kRelaxed),
          .consume_ns = consume_.load(kRelaxed)};
}

}  // namespace stoker

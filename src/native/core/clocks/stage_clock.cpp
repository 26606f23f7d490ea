#include "core/clocks/stage_clock.h"

namespace stoker {

StageTotals& StageTotals::operator+=(const StageTotals& other) {
  for (size_t i = 0; i < kStages; ++i) {
    of[i].samples += other.of[i].samples;
    of[i].nanoseconds += other.of[i].nanoseconds;
  }
  bytes_read += other.bytes_read;
  return *this;
}

void StageClock::start(uint32_t batch, uint64_t index, bool traced) {
  traced_ = traced;
  event_.batch = batch;
  event_.index = index;
  seen_ = 0;
  turns_ = {};
  begun_ = last_ = steady_nanoseconds();
}

void StageClock::add(Stage stage) {
  add_until(stage, steady_nanoseconds());
}

void StageClock::add_until(Stage stage, uint64_t now) {
  const auto index = static_cast<size_t>(stage);
  if (stage == Stage::kRead) read_ns_ += now - last_;
  grow(nanoseconds_[index], (now - last_) * weight_);
  if ((seen_ >> index & 1) == 0) grow(samples_[index], weight_);
  seen_ |= 1U << index;
  if (traced_) {
    event_.begin_ns = last_;
    event_.end_ns = now;
    event_.what = static_cast<uint16_t>(index);
    log_->add(event_);
  }
  last_ = now;
}

void StageClock::add_turn(Stage stage) {
  uint64_t before = last_;
  for (const uint64_t turn : turns_) before += turn;
  turns_[static_cast<size_t>(stage)] += steady_nanoseconds() - before;
}

void StageClock::add_turns() {
  for (size_t i = 0; i < kStages; ++i) {
    if (turns_[i] != 0) add_until(static_cast<Stage>(i), last_ + turns_[i]);
  }
  turns_ = {};
}

void StageClock::finish() {
  const bool is_short = last_ - begun_ < kShortNanoseconds;
  short_samples_ = is_short ? short_samples_ + (sparse() ? 0 : 1) : 0;
  weight_ = 0;
}

StageTotals StageClock::totals() const {
  StageTotals totals;
  for (size_t i = 0; i < kStages; ++i) {
    totals.of[i].samples = samples_[i].load(std::memory_order_relaxed);
    totals.of[i].nanoseconds = nanoseconds_[i].load(std::memory_order_relaxed);
  }
  totals.bytes_read = bytes_.load(std::memory_order_relaxed);
  return totals;
}

}  // namespace stoker

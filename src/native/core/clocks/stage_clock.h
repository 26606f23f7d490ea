// Where the time of decoding threads goes, and what they did when.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/clocks/trace_log.h"

namespace stoker {

// What a thread does with a sample.
enum class Stage : uint8_t {
  kRead,      // bytes from a file of this machine, or from a cache
  kRemote,    // waiting for a store
  kCheck,     // the CRC of the record
  kParse,     // which bytes are the image, the label, the boxes
  kConvert,   // the caller's function decodes a format that the core does not
  kDecode,    // JPEG to pixels
  kResample,  // to the sizes and colours that the transforms ask for
  kWrite,     // into the batch: types and layouts; raw pixels are copied and checked in one pass
};
inline constexpr size_t kStages = 8;
inline constexpr std::array<const char*, kStages> kStageNames{"read",    "remote", "check",    "parse",
                                                              "convert", "decode", "resample", "write"};

struct StageTotal {
  uint64_t samples = 0;  // that went through it
  uint64_t nanoseconds = 0;
};

struct StageTotals {
  std::array<StageTotal, kStages> of{};
  uint64_t bytes_read = 0;

  StageTotals& operator+=(const StageTotals& other);
};

// Written by one thread, read by any.
//
// The time since the last mark belongs to the stage that a mark names. Asking for the time costs some 25 ns,
// so where samples take a few microseconds, only one of 16 is timed and counts for all of them.
class StageClock {
 public:
  // Also writes what is timed to `log`, as events of `thread`, whenever that is on.
  void attach(TraceLog* log, uint16_t thread) { log_ = log, event_.thread = thread; }

  // Off: nothing is timed. To see what timing costs.
  void set_on(bool on) { on_.store(on, std::memory_order_relaxed); }

  // A sample begins. With `timed` it is timed although it may be short.
  void begin(uint32_t batch, uint64_t index, bool timed = false) {
    const bool traced = log_ != nullptr && log_->on();
    read_ns_ = read_bytes_ = 0;
    weight_ = traced || timed || !sparse() ? 1 : sample_++ % kSparse == 0 ? kSparse : 0;
    if (!on_.load(std::memory_order_relaxed)) weight_ = 0;
    if (weight_ != 0) start(batch, index, traced);
  }

  // The time since the last mark, or since begin(), belongs to `stage`. Does nothing outside of a sample.
  void mark(Stage stage) {
    if (weight_ != 0) add(stage);
  }

  // The same of stages that take turns, whose times mark_turns() adds up: as if they had come one after the
  // other, in the order of their names.
  void mark_turn(Stage stage) {
    if (weight_ != 0) add_turn(stage);
  }
  void mark_turns() {
    if (weight_ != 0) add_turns();
  }

  // The sample is done, or has failed; what is not marked belongs to no stage.
  void end() {
    if (weight_ != 0) finish();
  }

  void count_bytes(uint64_t bytes) {
    grow(bytes_, bytes);
    read_bytes_ += bytes;
  }

  // Of the last sample: how long reading it from a file or a cache of this machine took, 0 if it was not read
  // there or not timed; and its bytes.
  uint64_t read_ns() const { return read_ns_; }
  uint64_t read_bytes() const { return read_bytes_; }

  StageTotals totals() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Counter = std::atomic<uint64_t>;

  static constexpr uint64_t kSparse = 16;
  static constexpr uint64_t kShortNanoseconds = 20'000;
  static constexpr uint32_t kShortInARow = 8;

  bool sparse() const { return short_samples_ >= kShortInARow; }
  // Only one thread writes, so nothing has to be locked.
  static void grow(Counter& counter, uint64_t by) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  void start(uint32_t batch, uint64_t index, bool traced);
  void add(Stage stage);
  void add_until(Stage stage, uint64_t now);
  void add_turn(Stage stage);
  void add_turns();
  void finish();

  TraceLog* log_ = nullptr;
  std::atomic<bool> on_{true};
  TraceEvent event_;
  bool traced_ = false;
  uint64_t weight_ = 0;  // how many samples this one counts for; 0: it is not timed
  uint64_t sample_ = 0;
  uint32_t short_samples_ = 0;
  uint32_t seen_ = 0;  // stages of this sample, a bit each
  uint64_t begun_ = 0, last_ = 0;
  uint64_t read_ns_ = 0, read_bytes_ = 0;
  std::array<uint64_t, kStages> turns_{};  // nanoseconds since the last mark
  std::array<Counter, kStages> samples_{};
  std::array<Counter, kStages> nanoseconds_{};
  Counter bytes_{0};
};

// Nanoseconds of the steady clock, which is Python's `time.monotonic_ns` where both come from one system
// clock.
inline uint64_t steady_nanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace stoker

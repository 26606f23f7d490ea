// Asks the system to read the next samples into memory, if reading turns out to be slow.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/sources/sample_source.h"
#include "core/threads/thread.h"

namespace stoker {

// Samples of an engine have positions 0, 1, 2, ... in the order in which they are added, which is the order
// in which its threads begin them.
//
// Asking for a sample that is in memory already costs a system call, a tenth of the time of a small sample.
// So nothing is asked for until reads take longer than copying from memory. Then threads of this object ask
// for the samples after those that are being read. Some samples are left out on purpose: once these are read
// quickly, too, the threads stop asking.
//
// Any thread may call any function, but add() and forget() belong to one.
class LookAhead {
 public:
  // Has the system begin to read a sample; returns how many bytes. May wait, and may throw anything.
  using Start = std::function<uint64_t(SampleId id)>;

  static constexpr uint64_t kMostSamples = 4096;              // asked for and not yet begun
  static constexpr uint64_t kMostBytes = uint64_t{64} << 20;  // of these samples; one sample may have more
  // How much longer reads must take, on average, than copying from memory does.
  static constexpr double kSlowNanoseconds = 50'000;

  // What one thread knows of its own reads.
  struct Reads {
    double mean_ns = 0;     // how much longer they took, weighted by how late they were
    uint64_t switches = 0;  // how often the system took the CPU from it, when that was last looked at
    bool left_out = false;  // the sample being read was not asked for, though others are
  };

  explicit LookAhead(Start start) : start_(std::move(start)) {}
  ~LookAhead() { close(); }
  LookAhead(const LookAhead&) = delete;
  LookAhead& operator=(const LookAhead&) = delete;

  // These samples come next. Returns the position of the first.
  uint64_t add(std::shared_ptr<const std::vector<SampleId>> samples);

  // Samples before this position are done.
  void pass(uint64_t position);

  // All samples that were added are no longer needed.
  void forget();

  // The calling thread begins the sample at this position. True if its reading has to be timed.
  bool begin(uint64_t position, Reads& mine) {
    mine.left_out = on_.load(std::memory_order_relaxed) && begin_while_on(position);
    if (mine.left_out || mine.mean_ns > kSlowNanoseconds / 10) look_at_switches(mine);
    return mine.left_out;
  }

  // Reading that sample took this long, for so many bytes. Not called for one that failed or was not timed.
  void end(uint64_t position, Reads& mine, uint64_t nanoseconds, uint64_t bytes);

  // Whether samples are asked for now.
  bool on() const { return on_.load(std::memory_order_relaxed); }

  // From now on nothing is asked for. Waits for what is being asked for. May be called twice.
  void close();

 private:
  struct Hint {
    uint64_t first;
    std::shared_ptr<const std::vector<SampleId>> samples;
    uint64_t end() const { return first + samples->size(); }
  };

  // Whether the system has taken the CPU from the calling thread since the last look, as far as it tells.
  static bool look_at_switches(Reads& mine);
  bool begin_while_on(uint64_t position);
  void switch_on(uint64_t position);
  // The rest under the mutex.
  void move_on(uint64_t begun);
  bool may_ask() const;
  void leave_out_later();
  SampleId at(uint64_t position) const;
  void work();

  Start start_;
  alignas(64) std::atomic<bool> on_{false};  // written under the mutex, on a line that is read all the time

  alignas(64) std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Hint> hints_;
  uint64_t end_ = 0;             // of what was added
  uint64_t begun_ = 0;           // samples before it are begun, or done
  uint64_t next_ = 0;            // to be asked for
  std::vector<uint64_t> bytes_;  // asked for of the sample at a position, modulo kMostSamples
  uint64_t bytes_ahead_ = 0;     // of the samples from begun_ on
  uint64_t asking_ = 0;          // threads that ask right now
  uint64_t largest_ = 0;         // bytes of a sample so far
  uint64_t left_out_ = 0;        // the position that is not asked for
  uint64_t gap_ = 0;             // from such a position to the next
  double left_out_mean_ns_ = 0;  // as Reads::mean_ns, of such positions
  bool refused_ = false;         // the system starts no threads
  bool closing_ = false;
  std::vector<Thread> threads_;
  std::mutex joining_;  // taken before mutex_
};

}  // namespace stoker

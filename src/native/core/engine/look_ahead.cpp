#include "core/engine/look_ahead.h"

#include <sys/resource.h>

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

namespace stoker {
namespace {

// A shard needs one thread: the system reads on by itself. Single files have to be found and opened first,
// which takes as long as reading them on a slow disk or a network.
constexpr size_t kThreads = 16;

// Longer than copying bytes from memory takes, also on a machine that has other things to do.
constexpr double kNanosecondsPerByte = 1.0;

// The most that a single read counts, so that one delayed read does not look like a slow disk.
constexpr double kMostNanoseconds = 1e6;

constexpr double kWeight = 1.0 / 64;
constexpr double kLeftOutWeight = 1.0 / 16;
constexpr uint64_t kFirstGap = 256, kLeastGap = 64, kMostGap = 4096;

// How much longer a read took than copying does.
double excess(uint64_t nanoseconds, uint64_t bytes) {
  const double longer = static_cast<double>(nanoseconds) - kNanosecondsPerByte * static_cast<double>(bytes);
  return std::clamp(longer, 0.0, kMostNanoseconds);
}

}  // namespace

uint64_t LookAhead::add(std::shared_ptr<const std::vector<SampleId>> samples) {
  bool wake = false;
  uint64_t first = 0;
  {
    const std::lock_guard lock(mutex_);
    first = end_;
    const uint64_t count = samples->size();
    hints_.push_back({first, std::move(samples)});
    end_ += count;
    wake = may_ask();
  }
  if (wake) wake_.notify_one();
  return first;
}

void LookAhead::pass(uint64_t position) {
  const std::lock_guard lock(mutex_);
  move_on(position);
}

void LookAhead::forget() {
  const std::lock_guard lock(mutex_);
  move_on(end_);
}

void LookAhead::move_on(uint64_t begun) {
  for (; begun_ < begun && bytes_ahead_ != 0; ++begun_) {
    bytes_ahead_ -= std::exchange(bytes_[begun_ % kMostSamples], 0);
  }
  begun_ = std::max(begun_, begun);
  next_ = std::max(next_, begun_);
  while (!hints_.empty() && hints_.front().end() <= begun_) hints_.pop_front();
}

bool LookAhead::may_ask() const {
  return on_ && next_ < end_ && next_ - begun_ < kMostSamples &&
         (bytes_ahead_ + asking_ == 0 ||
          (largest_ != 0 && bytes_ahead_ + (asking_ + 1) * largest_ <= kMostBytes));
}

void LookAhead::leave_out_later() {
  left_out_ = next_ + gap_;
}

SampleId LookAhead::at(uint64_t position) const {
  const auto entry = std::ranges::upper_bound(hints_, position, {}, &Hint::end);
  return (*entry->samples)[position - entry->first];
}

bool LookAhead::begin_while_on(uint64_t position) {
  bool wake = false, left_out = false;
  {
    const std::lock_guard lock(mutex_);
    if (!on_) return false;
    move_on(std::max(begun_, position + 1));
    left_out = position == left_out_;
    if (position > left_out_ + kMostSamples) leave_out_later();  // it failed, or was forgotten
    wake = may_ask();
  }
  if (wake) wake_.notify_one();
  return left_out;
}

bool LookAhead::look_at_switches(Reads& mine) {
#if defined(RUSAGE_THREAD)
  rusage used{};
  if (::getrusage(RUSAGE_THREAD, &used) != 0) return false;
  const uint64_t before = std::exchange(mine.switches, static_cast<uint64_t>(used.ru_nivcsw));
  return mine.switches != before;
#else
  static_cast<void>(mine);
  return false;
#endif
}

void LookAhead::end(uint64_t position, Reads& mine, uint64_t nanoseconds, uint64_t bytes) {
  const double longer = excess(nanoseconds, bytes);
  // A thread that waits for a disk gives up its CPU voluntarily; this thread had to wait for a CPU.
  if (longer > kSlowNanoseconds && look_at_switches(mine)) return;
  if (!mine.left_out) {
    mine.mean_ns += kWeight * (longer - mine.mean_ns);
    if (mine.mean_ns <= kSlowNanoseconds) return;
    mine.mean_ns = 0;
    if (!on()) switch_on(position);
    return;
  }
  const std::lock_guard lock(mutex_);
  const double before = left_out_mean_ns_;
  left_out_mean_ns_ += kLeftOutWeight * (longer - left_out_mean_ns_);
  gap_ = left_out_mean_ns_ < before ? std::max(gap_ / 2, kLeastGap) : std::min(gap_ * 2, kMostGap);
  if (left_out_mean_ns_ < kSlowNanoseconds / 2) on_ = false;
  leave_out_later();
}

void LookAhead::switch_on(uint64_t position) {
  const std::lock_guard lock(mutex_);
  if (on_ || closing_ || refused_) return;
  try {
    bytes_.resize(kMostSamples);
    threads_.reserve(kThreads);
    while (threads_.size() < kThreads) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {  // a limit of the system: fewer will do
  } catch (const std::bad_alloc&) {
  }
  if (threads_.empty()) {
    refused_ = true;
    return;
  }
  move_on(std::max(begun_, position + 1));
  left_out_mean_ns_ = kMostNanoseconds;
  gap_ = kFirstGap;
  leave_out_later();
  on_ = true;
  wake_.notify_one();
}

void LookAhead::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return closing_ || may_ask(); });
    if (closing_) return;
    const uint64_t position = next_++;
    if (position == left_out_) continue;
    const SampleId id = at(position);
    ++asking_;
    const bool more = may_ask();
    lock.unlock();
    if (more) wake_.notify_one();  // this thread may have to wait
    uint64_t bytes = 0;
    try {
      bytes = start_(id);
    } catch (...) {  // whoever reads it says what is wrong
    }
    lock.lock();
    --asking_;
    largest_ = std::max(largest_, bytes);
    if (position < begun_) continue;
    bytes_[position % kMostSamples] = bytes;
    bytes_ahead_ += bytes;
  }
}

void LookAhead::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    on_ = false;
  }
  wake_.notify_all();
  const std::lock_guard joining(joining_);
  for (Thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

}  // namespace stoker

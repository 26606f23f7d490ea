#include "core/worker_clock.h"

#include <algorithm>

#include "core/stage_clock.h"

namespace stoker {
namespace {

std::optional<uint64_t> read_clock(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return std::nullopt;
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

WorkerTotals& WorkerTotals::operator+=(const WorkerTotals& other) {
  busy_ns += other.busy_ns;
  idle_ns += other.idle_ns;
  cpu_ns = cpu_ns && other.cpu_ns ? std::optional(*cpu_ns + *other.cpu_ns) : std::nullopt;
  return *this;
}

void WorkerClock::begin() {
#ifdef __linux__  // elsewhere no thread may ask for the time of another
  clockid_t clock{};
  if (pthread_getcpuclockid(pthread_self(), &clock) == 0) {
    cpu_clock_ = clock;
    has_cpu_ = true;
  }
#endif
  begun_ = steady_nanoseconds();
}

void WorkerClock::rest() {
  resting_since_ = steady_nanoseconds();
}

void WorkerClock::wake() {
  const uint64_t since = resting_since_.exchange(0);
  if (since != 0) idle_ += steady_nanoseconds() - since;
}

void WorkerClock::end() {
  wake();
  if (has_cpu_) cpu_ = read_clock(cpu_clock_).value_or(0);
  ended_ = steady_nanoseconds();  // last: from now on nobody asks for the clock of a thread that is gone
}

std::optional<uint64_t> WorkerClock::cpu_now() const {
  if (!has_cpu_) return std::nullopt;
  return ended_ != 0 ? cpu_.load() : read_clock(cpu_clock_);
}

WorkerTotals WorkerClock::totals() const {
  const uint64_t begun = begun_, ended = ended_, now = ended != 0 ? ended : steady_nanoseconds();
  if (begun == 0) return {};
  uint64_t idle = idle_;
  if (const uint64_t since = resting_since_; since != 0 && since < now) idle += now - since;
  const uint64_t lived = now - begun;
  idle = std::min(idle, lived);  // it may have gone back to work between two looks
  return {.busy_ns = lived - idle, .idle_ns = idle, .cpu_ns = cpu_now()};
}

}  // namespace stoker

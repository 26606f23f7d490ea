#include "core/clocks/worker_clock.h"

#include "core/clocks/stage_clock.h"

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

void WorkerClock::add_to_idle(int64_t sign) {
  ++writes_;
  idle_ = idle_ + sign * static_cast<int64_t>(steady_nanoseconds());
  ++writes_;
}

void WorkerClock::rest() {
  add_to_idle(-1);
}

void WorkerClock::wake() {
  if (idle_ < 0) add_to_idle(1);
}

void WorkerClock::end() {
  wake();
  if (has_cpu_) cpu_ = read_clock(cpu_clock_).value_or(0);
  ended_ = steady_nanoseconds();  // last: from now on the clock of the thread, which is gone, is not read
}

std::optional<uint64_t> WorkerClock::cpu_now() const {
  if (!has_cpu_) return std::nullopt;
  if (ended_ == 0) {
    if (const auto used = read_clock(cpu_clock_)) return used;
  }
  return cpu_.load();  // it has ended, if only just now
}

WorkerTotals WorkerClock::totals() const {
  const uint64_t begun = begun_;
  if (begun == 0) return {};
  int64_t noted = 0;
  uint64_t now = 0;
  uint32_t before = 0;
  do {  // until nothing was written in between: then totals never go back
    before = writes_;
    noted = idle_;
    const uint64_t ended = ended_;
    now = ended != 0 ? ended : steady_nanoseconds();
  } while (before % 2 != 0 || before != writes_);
  const auto idle = static_cast<uint64_t>(noted < 0 ? noted + static_cast<int64_t>(now) : noted);
  return {.busy_ns = now - begun - idle, .idle_ns = idle, .cpu_ns = cpu_now()};
}

}  // namespace stoker

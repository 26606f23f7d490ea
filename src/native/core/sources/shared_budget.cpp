#include "core/sources/shared_budget.h"

#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>

#include "core/base/little_endian.h"

namespace stoker {
namespace {

// The lock is held for a few microseconds at a time. If it is held for longer, its process cleans up or was
// stopped, and training does not wait for either.
constexpr std::chrono::milliseconds kTimeout{5};
constexpr std::chrono::microseconds kPause{50};

using Number = std::array<uint8_t, 8>;

std::optional<uint64_t> read_number(int descriptor) {
  Number bytes;
  if (read_at(descriptor, 0, bytes) != bytes.size()) return {};
  return load_le64(bytes.data());
}

bool write_number(int descriptor, uint64_t value) {
  Number bytes;
  store_le64(value, bytes.data());
  return ::pwrite(descriptor, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
}

enum class Attempt { kDone, kAgain, kFailed };

// Retries until it succeeds, fails or runs out of time; returns the last outcome.
template <typename F>
Attempt retry(const F& attempt) {
  const auto end = std::chrono::steady_clock::now() + kTimeout;
  for (;;) {
    const Attempt outcome = attempt();
    if (outcome != Attempt::kAgain || std::chrono::steady_clock::now() >= end) return outcome;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

SharedBudget::Answer SharedBudget::take(uint64_t bytes) {
  const auto attempt = [&] { return mutex_.try_lock() ? Attempt::kDone : Attempt::kAgain; };
  if (retry(attempt) != Attempt::kDone) return Answer::kBusy;
  const std::lock_guard guard(mutex_, std::adopt_lock);
  return take_alone(bytes);
}

SharedBudget::Answer SharedBudget::take_alone(uint64_t bytes) {
  const auto attempt = [&] {
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) return Attempt::kDone;
    return errno == EWOULDBLOCK || errno == EINTR ? Attempt::kAgain : Attempt::kFailed;
  };
  const Attempt last = retry(attempt);
  if (last != Attempt::kDone) return last == Attempt::kAgain ? Answer::kBusy : Answer::kFailed;
  const Answer answer = take_locked(bytes);
  ::flock(file_.get(), LOCK_UN);
  return answer;
}

SharedBudget::Answer SharedBudget::take_locked(uint64_t bytes) {
  const auto used = read_number(file_.get());
  if (!used) return Answer::kFailed;
  if (bytes > budget_ || *used > budget_ - bytes) return Answer::kFull;
  return write_number(file_.get(), *used + bytes) ? Answer::kTaken : Answer::kFailed;
}

uint64_t SharedBudget::used() const {
  return read_number(file_.get()).value_or(0);
}

}  // namespace stoker

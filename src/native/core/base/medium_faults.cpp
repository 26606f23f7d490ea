#include "core/base/medium_faults.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace stoker {
namespace {

// A guarded read of one thread.
struct Guard {
  uintptr_t begin;
  uintptr_t end;
  sigjmp_buf back;
};

// Not thread_local: its first use in a thread may take memory, and the handler runs in any thread.
pthread_key_t running;

struct sigaction before;

enum class State { kNone, kInstalling, kInstalled, kImpossible };
std::atomic<State> state{State::kNone};

// Pages are the unit of what fails, and some systems tell the page alone.
constexpr uintptr_t kMostPageBytes = 64 << 10;

bool is_of(const Guard& guard, const siginfo_t& info) {
#if defined(SI_TKILL)
  // A handler that was installed later got it first, and has raised it again.
  if (info.si_code == SI_TKILL) return info.si_pid == ::getpid();
#endif
  const auto at = reinterpret_cast<uintptr_t>(info.si_addr);
  return info.si_code > 0 && at >= guard.begin / kMostPageBytes * kMostPageBytes && at < guard.end;
}

// As if this handler were not there.
void pass_on(int number, siginfo_t* info, void* context) {
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(number, info, context);
  } else if (before.sa_handler == SIG_DFL || (before.sa_handler == SIG_IGN && info->si_code > 0)) {
    struct sigaction ending{};
    ending.sa_handler = SIG_DFL;
    ::sigaction(number, &ending, nullptr);
    if (info->si_code <= 0) ::raise(number);  // otherwise the access is tried again, and ends the process
  } else if (before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
  }
}

void on_fault(int number, siginfo_t* info, void* context) {
  auto* guard = static_cast<Guard*>(::pthread_getspecific(running));
  if (guard != nullptr && is_of(*guard, *info)) {
    // Restores the signals that were blocked before: a jump out of a handler does not do that by itself.
    ::pthread_sigmask(SIG_SETMASK, &static_cast<const ucontext_t*>(context)->uc_sigmask, nullptr);
    siglongjmp(guard->back, 1);
  }
  pass_on(number, info, context);
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == &on_fault;
}

bool install() {
  struct sigaction ours{};
  ours.sa_sigaction = &on_fault;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  ::sigemptyset(&ours.sa_mask);
  return ::sigaction(SIGBUS, nullptr, &before) == 0 && ::sigaction(SIGBUS, &ours, nullptr) == 0;
}

}  // namespace

bool can_guard() noexcept {
  State now = state.load(std::memory_order_acquire);
  if (now == State::kNone && state.compare_exchange_strong(now, State::kInstalling)) {
    now = ::pthread_key_create(&running, nullptr) == 0 && install() ? State::kInstalled : State::kImpossible;
    state.store(now, std::memory_order_release);
  }
  if (now != State::kInstalled)
    return false;  // a child of a fork in the middle never can, and reads otherwise
  struct sigaction there{};
  return ::sigaction(SIGBUS, nullptr, &there) == 0 && is_ours(there);
}

bool run_guarded(std::span<const uint8_t> mapped, void (*read)(void*), void* what) noexcept {
  Guard guard;
  guard.begin = reinterpret_cast<uintptr_t>(mapped.data());
  guard.end = guard.begin + mapped.size();
  if (sigsetjmp(guard.back, 0) != 0) {
    ::pthread_setspecific(running, nullptr);
    return false;
  }
  if (::pthread_setspecific(running, &guard) != 0) return false;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  read(what);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  ::pthread_setspecific(running, nullptr);
  return true;
}

}  // namespace stoker

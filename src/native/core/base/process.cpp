#include "core/base/process.h"

#include <pthread.h>

namespace stoker {
namespace {

constinit std::atomic<uint64_t> forks{0};

[[maybe_unused]] const int counting = ::pthread_atfork(nullptr, nullptr, [] { ++forks; });

}  // namespace

uint64_t process_number() noexcept {
  return forks.load(std::memory_order_relaxed);
}

}  // namespace stoker

// Which process this is, and what each process has for itself.
//
// A fork copies all memory, but only one thread. In the child, a lock that another thread held is held
// forever, and data that this thread was changing stay half changed. So threads share data under a lock in a
// PerProcess, of which a child makes its own; and objects that need their threads remember the number of
// their process, and refuse to work in another.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace stoker {

// How many forks lie between this process and the first one that loaded the core. Takes no system call.
uint64_t process_number() noexcept;

// A `T` for each process. A forked one finds its own, newly made; that of its parent is never touched or
// freed there.
template <typename T>
class PerProcess {
 public:
  PerProcess() : own_(new Own) {}
  ~PerProcess() {
    if (Own* own = own_.load(); own->process == process_number()) delete own;
  }
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;

  // That of this process, for as long as this object lives. From any thread.
  T& get() const {
    Own* own = own_.load(std::memory_order_acquire);
    return own->process == process_number() ? own->value : renew(own);
  }

 private:
  struct Own {
    const uint64_t process = process_number();
    T value = T();
  };

  T& renew(Own* parents) const {
    auto own = std::make_unique<Own>();
    if (own_.compare_exchange_strong(parents, own.get())) return own.release()->value;
    return parents->value;  // another thread came first, and this is what it made
  }

  mutable std::atomic<Own*> own_;
};

}  // namespace stoker

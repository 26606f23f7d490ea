// Which process this is, and what each process has for itself.
//
// A fork copies the memory of all threads and one of the threads. In the child, a lock that another thread
// held is held forever, and what it was changing stays half changed. So what threads share under a lock is a
// PerProcess, of which a child has its own; and what cannot work without its threads remembers the number of
// its process and refuses to work in another.
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

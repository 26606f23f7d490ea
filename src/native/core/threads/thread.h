// Threads whose stack is large enough, and which can throw where memory has run out.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <functional>

namespace stoker {

// The least stack of a thread; more where the system gives more. The core itself takes a tenth of it, but a
// function of Python that a thread calls takes what its library likes, and musl gives 128 KiB in all, macOS
// 512.
inline constexpr size_t kLeastStackBytes = size_t{1} << 20;

// Allocates the memory that the first exception of the calling thread needs. Otherwise that happens when it
// is thrown, and if there is no memory then, the C library ends the process.
void prepare_for_exceptions();

// Must be joined before it is destroyed.
class Thread {
 public:
  // Calls `run`, which must not throw, in a thread, and returns when that has started. Throws
  // std::system_error where the system refuses a thread.
  explicit Thread(std::function<void()> run);
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&&) = delete;
  ~Thread();

  bool joinable() const { return joinable_; }
  void join();

 private:
  pthread_t thread_{};
  bool joinable_ = false;
};

}  // namespace stoker

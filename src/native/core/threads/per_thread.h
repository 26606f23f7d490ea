// An object for each thread that asks for one, kept until the thread ends.
#pragma once

#include <pthread.h>

#include <memory>
#include <new>
#include <utility>

namespace stoker {

// Like thread_local, but without memory for an object it throws std::bad_alloc, while thread_local ends the
// process. Lives as long as the process.
template <typename T>
class PerThread {
 public:
  PerThread() {
    if (::pthread_key_create(&key_, [](void* object) { delete static_cast<T*>(object); }) != 0)
      throw std::bad_alloc();
  }
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

  // This thread's, made of `arguments` by its first call.
  template <typename... Arguments>
  T& get(Arguments&&... arguments) {
    if (void* there = ::pthread_getspecific(key_)) return *static_cast<T*>(there);
    auto object = std::make_unique<T>(std::forward<Arguments>(arguments)...);
    if (::pthread_setspecific(key_, object.get()) != 0) throw std::bad_alloc();
    return *object.release();
  }

 private:
  pthread_key_t key_{};
};

}  // namespace stoker

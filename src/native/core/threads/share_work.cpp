#include "core/threads/share_work.h"

#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <vector>

#include "core/threads/thread.h"

namespace stoker {

size_t share_work(size_t threads, const std::function<void()>& work) {
  std::mutex mutex;
  std::exception_ptr error;
  const auto root = [&]() noexcept {
    try {
      work();
    } catch (...) {  // a thread root: the caller gets it
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  std::vector<Thread> others;
  try {
    if (threads > 1) others.reserve(threads - 1);
    while (others.size() + 1 < threads) others.emplace_back(root);
  } catch (const std::system_error&) {  // a limit of the system; those that run do the work
  } catch (const std::bad_alloc&) {     // no memory for another
  }
  root();
  for (Thread& other : others) other.join();
  if (error) std::rethrow_exception(error);
  return others.size() + 1;
}

}  // namespace stoker

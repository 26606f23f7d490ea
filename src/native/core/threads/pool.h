// Threads that work through jobs of many small tasks, first in, first out.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "core/clocks/worker_clock.h"
#include "core/threads/thread.h"

namespace stoker {

// No processor has more to run them on, and each has memory of its own.
inline constexpr size_t kMostThreads = 4096;

// A job is `count` calls of one function. Tasks start strictly in the order of their jobs and their index;
// when a job's last task has started, the next job's tasks start, so no thread waits for stragglers.
//
// The mutex is taken once per job and worker, not once per task: within a job, a task is claimed by
// incrementing a counter.
class ThreadPool {
 public:
  // Called as task(index, worker) with worker < size(). Must not throw.
  using Task = std::function<void(size_t index, size_t worker)>;

  // Throws kIo where the system refuses a thread; then there are none.
  explicit ThreadPool(size_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Never blocks. After close() the job is dropped.
  void submit(size_t count, Task task);

  // Drops every task that has not started, and returns when those that have are done. May be called twice,
  // and by several threads, but by no task.
  void close();

  size_t size() const { return threads_.size(); }

  // Of all threads together, since they began; also after close().
  WorkerTotals totals() const;

 private:
  struct Job {
    Job(size_t tasks, Task work) : count(tasks), task(std::move(work)) {}

    size_t count;
    Task task;
    alignas(64) std::atomic<size_t> next{0};  // on a cache line that only claims change
  };

  // The first job that has tasks left; nothing once the pool is closing. Waits for one. A thread that was
  // woken wakes two others where tasks are left for them: who submits jobs would take 2 us for each of them.
  std::shared_ptr<Job> wait_for_job(WorkerClock& clock);
  void work(size_t worker);

  std::mutex mutex_;
  std::condition_variable wake_;
  size_t waiting_ = 0;                    // threads
  std::list<std::shared_ptr<Job>> jobs_;  // a list, so that threads take jobs out without asking for memory
  std::atomic<bool> closing_{false};      // set under the mutex
  std::vector<WorkerClock> clocks_;       // one a thread
  std::vector<Thread> threads_;
  std::mutex joining_;  // taken before no other
};

}  // namespace stoker

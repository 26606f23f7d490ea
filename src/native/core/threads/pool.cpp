#include "core/threads/pool.h"

#include <string>
#include <system_error>
#include <utility>

#include "core/base/errors.h"

namespace stoker {

ThreadPool::ThreadPool(size_t threads) : clocks_(threads) {
  threads_.reserve(threads);
  try {
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error& error) {
    close();
    throw Error(
        ErrorCode::kIo,
        "the system starts " + std::to_string(threads_.size()) + " of " + std::to_string(threads) +
            " threads, and no more (" + std::generic_category().message(error.code().value()) +
            "); use fewer threads, or raise the limit of processes or of memory (ulimit -u, ulimit -v)",
        {}, error.code().value());
  } catch (...) {
    close();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  close();
}

void ThreadPool::submit(size_t count, Task task) {
  if (count == 0) return;
  auto job = std::make_shared<Job>(count, std::move(task));
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    jobs_.push_back(std::move(job));
  }
  count == 1 ? wake_.notify_one() : wake_.notify_all();
}

std::shared_ptr<ThreadPool::Job> ThreadPool::wait_for_job(WorkerClock& clock) {
  std::list<std::shared_ptr<Job>> begun;  // what their tasks hold is released outside the lock
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!closing_ && jobs_.empty()) {
      clock.rest();
      wake_.wait(lock, [this] { return closing_ || !jobs_.empty(); });
      clock.wake();
    }
    if (closing_) return nullptr;
    if (jobs_.front()->next.load(std::memory_order_relaxed) < jobs_.front()->count) return jobs_.front();
    begun.splice(begun.end(), jobs_, jobs_.begin());
  }
}

void ThreadPool::work(size_t worker) {
  WorkerClock& clock = clocks_[worker];
  clock.begin();
  while (const std::shared_ptr<Job> job = wait_for_job(clock)) {
    while (!closing_.load(std::memory_order_relaxed)) {
      const size_t index = job->next.fetch_add(1, std::memory_order_relaxed);
      if (index >= job->count) break;
      job->task(index, worker);
    }
  }
  clock.end();
}

WorkerTotals ThreadPool::totals() const {
  WorkerTotals totals;
  for (const WorkerClock& clock : clocks_) totals += clock.totals();
  return totals;
}

void ThreadPool::close() {
  std::list<std::shared_ptr<Job>> dropped;  // destroyed outside the lock
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    dropped.swap(jobs_);
  }
  wake_.notify_all();
  const std::lock_guard joining(joining_);
  for (Thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

}  // namespace stoker

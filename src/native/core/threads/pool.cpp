#include "core/threads/pool.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "core/base/errors.h"

namespace stoker {
namespace {

constexpr size_t kWoken = 2;  // threads that one wakes

}  // namespace

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
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    jobs_.push_back(std::move(job));
    wake = waiting_ != 0;
  }
  if (wake) wake_.notify_one();
}

std::shared_ptr<ThreadPool::Job> ThreadPool::wait_for_job(WorkerClock& clock) {
  std::list<std::shared_ptr<Job>> begun;  // what their tasks hold is released outside the lock
  std::unique_lock lock(mutex_);
  bool woken = false;
  for (;;) {
    if (!closing_ && jobs_.empty()) {
      clock.rest();
      ++waiting_;
      wake_.wait(lock, [this] { return closing_ || !jobs_.empty(); });
      --waiting_;
      clock.wake();
      woken = true;
    }
    if (closing_) return nullptr;
    const std::shared_ptr<Job> job = jobs_.front();
    const size_t claimed = job->next.load(std::memory_order_relaxed);
    if (claimed < job->count) {
      const size_t left = jobs_.size() > 1 ? kWoken : std::min(job->count - claimed - 1, kWoken);
      const size_t others = woken ? std::min(waiting_, left) : 0;
      lock.unlock();
      for (size_t i = 0; i < others; ++i) wake_.notify_one();
      return job;
    }
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

#include "core/pool.h"

#include <utility>

namespace stoker {

ThreadPool::ThreadPool(size_t threads) {
  threads_.reserve(threads);
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this, i] { work(i); });
}

ThreadPool::~ThreadPool() {
  close();
}

void ThreadPool::submit(size_t count, Task task) {
  if (count == 0) return;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    jobs_.push_back({count, 0, std::make_shared<const Task>(std::move(task))});
  }
  count == 1 ? wake_.notify_one() : wake_.notify_all();
}

void ThreadPool::work(size_t worker) {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return closing_ || !jobs_.empty(); });
    if (closing_) return;
    Job& job = jobs_.front();
    const size_t index = job.next++;
    std::shared_ptr<const Task> task = job.task;
    if (job.next == job.count) jobs_.pop_front();
    lock.unlock();
    (*task)(index, worker);
    task.reset();  // what the task holds is let go of outside the lock
    lock.lock();
  }
}

void ThreadPool::close() {
  std::deque<Job> dropped;  // destroyed outside the lock
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    dropped.swap(jobs_);
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

}  // namespace stoker

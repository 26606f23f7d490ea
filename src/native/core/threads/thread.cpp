#include "core/threads/thread.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

namespace stoker {
namespace {

struct Start {
  explicit Start(std::function<void()> work) : run(std::move(work)) {}

  std::function<void()> run;
  std::mutex mutex;
  std::condition_variable changed;
  bool begun = false;
};
using SharedStart = std::shared_ptr<Start>;

void check(int error) {
  if (error != 0) throw std::system_error(error, std::generic_category());
}

class Attributes {
 public:
  Attributes() { check(pthread_attr_init(&attributes_)); }
  ~Attributes() { pthread_attr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  pthread_attr_t* get() { return &attributes_; }

 private:
  pthread_attr_t attributes_;
};

void* run_thread(void* argument) {
  const std::unique_ptr<SharedStart> start(static_cast<SharedStart*>(argument));
  prepare_for_exceptions();
  {
    const std::lock_guard lock((*start)->mutex);
    (*start)->begun = true;
  }
  (*start)->changed.notify_one();
  (*start)->run();
  return nullptr;
}

}  // namespace

void prepare_for_exceptions() {
  // Volatile, since a compiler may leave out a call whose result is not used.
  [[maybe_unused]] const volatile int under_way = std::uncaught_exceptions();
}

Thread::Thread(std::function<void()> run) {
  const auto start = std::make_shared<Start>(std::move(run));
  auto argument = std::make_unique<SharedStart>(start);
  Attributes attributes;
  size_t stack = 0;
  check(pthread_attr_getstacksize(attributes.get(), &stack));
  check(pthread_attr_setstacksize(attributes.get(), std::max(stack, kLeastStackBytes)));
  check(pthread_create(&thread_, attributes.get(), run_thread, argument.get()));
  argument.release();
  joinable_ = true;
  std::unique_lock lock(start->mutex);
  start->changed.wait(lock, [&] { return start->begun; });
}

Thread::Thread(Thread&& other) noexcept
    : thread_(other.thread_), joinable_(std::exchange(other.joinable_, false)) {}

Thread::~Thread() {
  if (joinable_) std::terminate();
}

void Thread::join() {
  pthread_join(thread_, nullptr);
  joinable_ = false;
}

}  // namespace stoker

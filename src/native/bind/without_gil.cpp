// Python's own end of a thread is avoided in two steps. `atexit`, which comes before it, keeps those that
// come back from then on, and waits for those that were already on their way to the GIL. A thread that runs
// Python below a function of the core (the text of an error, a finalizer) comes back without us: Python
// unwinds its stack, and what meets a frame of C++ then stays there.
#include "bind/without_gil.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>

namespace stoker::bind {
namespace {

namespace nb = nanobind;
using std::chrono::milliseconds;

constexpr milliseconds kPoll{1};
// Others' functions at exit may wait for a thread of theirs, which then must come back in the end.
constexpr milliseconds kTimeout{2000};

std::atomic<int> coming_back{0};
std::atomic<bool> ending{false};
std::atomic<pthread_t> ending_thread{};

PyInterpreterState* interpreter = nullptr;
std::mutex making_state;

// Py_FinalizeEx() clears this before it ends threads. Py_IsFinalizing() says the same, and the stable
// interface has it only from Python 3.13 on.
bool is_over() {
  return Py_IsInitialized() == 0;
}

bool stays() {
  return ending && pthread_equal(ending_thread, pthread_self()) == 0;
}

// Returns only if the interpreter does not end after all.
void stay() {
  for (milliseconds waited{0}; waited < kTimeout || is_over(); waited += kPoll) {
    std::this_thread::sleep_for(kPoll);
  }
}

std::terminate_handler terminate_otherwise = nullptr;

void terminate() {
  if (stays() && is_over() && !std::current_exception()) stay_for_good();
  terminate_otherwise();
  std::abort();
}

void end() {
  ending_thread = pthread_self();
  ending = true;
  terminate_otherwise = std::set_terminate(&terminate);
  PyThreadState* state = PyEval_SaveThread();
  for (milliseconds waited{0}; coming_back > 0 && waited < kTimeout; waited += kPoll) {
    std::this_thread::sleep_for(kPoll);
  }
  PyEval_RestoreThread(state);
}

}  // namespace

void stay_for_good() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

WithoutGil::~WithoutGil() {
  // Counted before looking: either this sees that the end has begun, or the end sees this.
  ++coming_back;
  if (stays()) {
    --coming_back;  // the end does not wait for those that stay
    stay();
    ++coming_back;
  }
  PyEval_RestoreThread(state_);
  --coming_back;
}

WithGil::WithGil() {
  if (PyGILState_GetThisThreadState() == nullptr) {
    const std::lock_guard lock(making_state);
    made_ = PyThreadState_New(interpreter) != nullptr;
  }
  before_ = PyGILState_Ensure();
}

WithGil::~WithGil() {
  // A state that was made counts as one use more. This one keeps the GIL, so that the last has it.
  if (made_) PyGILState_Release(PyGILState_LOCKED);
  PyGILState_Release(before_);
}

void watch_the_interpreter() {
  interpreter = PyInterpreterState_Get();
  const auto in_child = [] {  // with one thread, which has the GIL, and its end has not begun
    making_state.unlock();
    coming_back = 0;
    ending = false;
  };
  pthread_atfork([] { making_state.lock(); }, [] { making_state.unlock(); }, in_child);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&end));
}

}  // namespace stoker::bind

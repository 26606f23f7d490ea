// Lets other threads run Python while the core works, and threads of the core run Python.
#pragma once

#include <nanobind/nanobind.h>

#include "core/threads/thread.h"

namespace stoker::bind {

// As nb::gil_scoped_release, and safe where the interpreter ends meanwhile. Python (before 3.14) ends a
// daemon thread that comes back then with pthread_exit(), whose way through a destructor is std::terminate().
// Such a thread stays here instead until the process is over.
class WithoutGil {
 public:
  // What runs now may use up the memory that the first exception of a thread of Python's needs.
  WithoutGil() : state_(PyEval_SaveThread()) { prepare_for_exceptions(); }
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

// As nb::gil_scoped_acquire, and safe where another thread forks meanwhile. A thread that Python does not
// know gets a state, which Python (before 3.12) makes under a lock that the child of a fork waits for, and
// without the GIL: so no fork begins while one is made.
class WithGil {
 public:
  WithGil();
  ~WithGil();
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  bool made_ = false;  // the state of this thread, here
  PyGILState_STATE before_;
};

// Keeps a thread that Python was ending until the process is over: an exception that is none has come to a
// frame of C++.
[[noreturn]] void stay_for_good();

// Lets the module know when the interpreter is about to end, and when it forks. To be called once, with the
// GIL.
void watch_the_interpreter();

}  // namespace stoker::bind

// Lets other threads run Python while the core works.
#pragma once

#include <nanobind/nanobind.h>

namespace stoker::bind {

// As nb::gil_scoped_release, and safe where the interpreter ends meanwhile. Python (before 3.14) ends a
// daemon thread that comes back then with pthread_exit(), whose way through a destructor is std::terminate().
// Such a thread stays here instead until the process is over.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

// Lets the module know when the interpreter is about to end. To be called once, with the GIL.
void watch_for_the_end();

}  // namespace stoker::bind

// What a test does in a forked process of its own.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace stoker::tests {

// The status with which a child ends that exits with what `act` returns; it is killed after ten seconds.
template <typename Act>
int status_of_child(const Act& act) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(10);
    ::_exit(act());
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

// What `act` returns in a child; -1 if that was killed.
template <typename Act>
int in_child(const Act& act) {
  const int status = status_of_child(act);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace stoker::tests

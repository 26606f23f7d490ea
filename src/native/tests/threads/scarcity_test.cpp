// Where the system has no more threads or memory: an error, and never the end of the process.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <new>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/jpeg/encode.h"
#include "core/jpeg/transcode.h"
#include "core/threads/pool.h"
#include "core/threads/share_work.h"

// Sanitizers reserve more of the address space than any limit leaves.
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace stoker {
namespace {

constexpr int kGood = 42;

// What `act` returns in a child that may map `spare` more bytes than it has mapped now; -1 if it was killed.
template <typename Act>
int with_spare_bytes(rlim_t spare, const Act& act) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + spare;
    const rlimit limit{most, most};
    ::setrlimit(RLIMIT_AS, &limit);
    ::_exit(act());
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("a pool whose threads the system refuses is an error that says so") {
  const auto act = [] {
    try {
      ThreadPool pool(2000);  // of 8 MiB of stack each
    } catch (const Error& error) {
      const bool says_so =
          std::string(error.what()).find(" of 2000 threads, and no more") != std::string::npos;
      return error.code() == ErrorCode::kIo && error.system_errno() == EAGAIN && says_so ? kGood : 1;
    }
    return 2;
  };
  CHECK(with_spare_bytes(rlim_t{64} << 20, act) == kGood);
}

TEST_CASE("work is shared by the threads there are") {
  const auto act = [] {
    std::atomic<size_t> calls{0};
    const size_t had = share_work(2000, [&] { ++calls; });
    return had >= 1 && had < 2000 && calls == had ? kGood : 1;
  };
  CHECK(with_spare_bytes(rlim_t{64} << 20, act) == kGood);
}

TEST_CASE("that libjpeg has no memory is not a fault of the image") {
  const Extent size{8192, 8192};
  const std::vector<uint8_t> jpeg =
      encode_jpeg(std::vector<uint8_t>(size_t{8192} * 8192, 128).data(), size, 1, {});
  const auto act = [&] {
    try {
      transcode_jpeg(jpeg);  // whose coefficients are 128 MiB
    } catch (const std::bad_alloc&) {
      return kGood;
    } catch (const Error&) {
      return 1;
    }
    return 2;
  };
  CHECK(with_spare_bytes(rlim_t{16} << 20, act) == kGood);
}

}  // namespace
}  // namespace stoker
#endif

// Mapped files that are cut short while they are read.
#include "core/base/medium_faults.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "core/base/random_access_file.h"
#include "tests/child.h"
#include "tests/shard.h"

namespace stoker {
namespace {

using tests::status_of_child;
using tests::TemporaryFile;

constexpr size_t kBytes = 256 << 10;

// The mapping of a file, of which somebody has asked often enough.
std::span<const uint8_t> mapping_of(const RandomAccessFile& file) {
  for (uint32_t i = 1; i < kMappedAt; ++i) CHECK(file.mapped().empty());
  return file.mapped();
}

// A copy of the bytes; nothing if the file does not give them.
std::vector<uint8_t> copy_of(std::span<const uint8_t> mapped) {
  std::vector<uint8_t> copy(mapped.size());
  if (!guarded(mapped, [mapped, &copy] { std::memcpy(copy.data(), mapped.data(), mapped.size()); }))
    return {};
  return copy;
}

TEST_CASE("a mapped file that is cut short gives no bytes, and gives them again when it has them") {
  REQUIRE(can_guard());
  const TemporaryFile file(std::string(kBytes, 'x'));
  const RandomAccessFile opened(file.path());
  const auto mapped = mapping_of(opened);
  REQUIRE(mapped.size() == kBytes);
  CHECK(copy_of(mapped) == std::vector<uint8_t>(kBytes, 'x'));
  REQUIRE(::truncate(file.path().c_str(), 0) == 0);
  for (int i = 0; i < 3; ++i) CHECK(copy_of(mapped).empty());
  CHECK(copy_of(mapped.last(1)).empty());
  REQUIRE(::truncate(file.path().c_str(), kBytes) == 0);
  CHECK(copy_of(mapped) == std::vector<uint8_t>(kBytes, 0));
}

TEST_CASE("threads read a mapped file while it is cut and grows again") {
  REQUIRE(can_guard());
  const TemporaryFile file(std::string(kBytes, 'x'));
  const RandomAccessFile opened(file.path());
  const auto mapped = mapping_of(opened);
  REQUIRE(mapped.size() == kBytes);
  std::atomic<bool> stop{false};
  std::atomic<int> failed{0}, wrong{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        const auto copy = copy_of(mapped);
        if (copy.empty()) {
          ++failed;
        } else if (copy.size() != kBytes || (copy[0] != 'x' && copy[0] != 0)) {
          ++wrong;
        }
      }
    });
  }
  while (failed < 200) {
    REQUIRE(::truncate(file.path().c_str(), 0) == 0);
    std::this_thread::yield();
    REQUIRE(::truncate(file.path().c_str(), kBytes) == 0);
  }
  stop = true;
  for (auto& reader : readers) reader.join();
  CHECK(wrong == 0);
}

TEST_CASE("a forked process reads and survives as its parent does") {
  REQUIRE(can_guard());
  const TemporaryFile file(std::string(kBytes, 'x'));
  const RandomAccessFile opened(file.path());
  const auto mapped = mapping_of(opened);
  const int status = status_of_child([&] {
    if (!can_guard() || copy_of(mapped).size() != kBytes) return 1;
    if (::truncate(file.path().c_str(), 0) != 0) return 2;
    return copy_of(mapped).empty() ? 42 : 3;
  });
  CHECK((WIFEXITED(status) ? WEXITSTATUS(status) : -1) == 42);
  CHECK(copy_of(mapped).empty());
}

// Sanitizers report the signal themselves, and need a large address space.
#if !defined(STOKER_SANITIZE_ADDRESS) && !defined(STOKER_SANITIZE_THREAD)
TEST_CASE("what others do wrong ends the process as ever") {
  REQUIRE(can_guard());
  const TemporaryFile file(std::string(kBytes, 'x'));
  const RandomAccessFile opened(file.path());
  const auto mapped = mapping_of(opened);
  const int unguarded = status_of_child([&] {
    if (::truncate(file.path().c_str(), 0) != 0) return 1;
    return static_cast<int>(*const_cast<const volatile uint8_t*>(mapped.data()));
  });
  CHECK((WIFSIGNALED(unguarded) ? WTERMSIG(unguarded) : -1) == SIGBUS);
  const int elsewhere = status_of_child([&] {
    const auto here = mapped.first(1);  // what is guarded is not what is read
    const uint8_t* there = mapped.data() + kBytes / 2;
    return guarded(here, [there] { static_cast<void>(*const_cast<const volatile uint8_t*>(there)); }) ? 1 : 2;
  });
  CHECK((WIFSIGNALED(elsewhere) ? WTERMSIG(elsewhere) : -1) == SIGBUS);
  const int sent = status_of_child([] {
    ::kill(::getpid(), SIGBUS);
    return 1;
  });
  CHECK((WIFSIGNALED(sent) ? WTERMSIG(sent) : -1) == SIGBUS);
}
TEST_CASE("nothing is mapped of a limited address space, nor of a file that is read a few times or empty") {
  const TemporaryFile file(std::string(kBytes, 'x')), empty("");
  const RandomAccessFile opened(file.path()), nothing(empty.path());
  CHECK(mapping_of(nothing).empty());
  const int status = status_of_child([&] {
    rlimit limit{};
    ::getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = uint64_t{1} << 46;
    if (::setrlimit(RLIMIT_AS, &limit) != 0) return 1;
    std::vector<uint8_t> bytes(kBytes);
    if (!mapping_of(opened).empty()) return 2;
    return opened.read_at(0, bytes) == kBytes && bytes[kBytes - 1] == 'x' ? 42 : 3;
  });
  CHECK((WIFEXITED(status) ? WEXITSTATUS(status) : -1) == 42);
  CHECK(mapping_of(opened).size() == kBytes);
}
#endif

void end_well(int) {
  ::_exit(42);
}

TEST_CASE("under another handler nothing is guarded until that is gone") {
  REQUIRE(can_guard());
  struct sigaction ours{}, other{};
  other.sa_handler = &end_well;
  REQUIRE(::sigaction(SIGBUS, &other, &ours) == 0);
  CHECK(!can_guard());
  REQUIRE(::sigaction(SIGBUS, &ours, nullptr) == 0);
  CHECK(can_guard());
}

}  // namespace
}  // namespace stoker

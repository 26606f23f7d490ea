// Where the system has no more threads or memory: an error, and never the end of the process.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <fstream>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/engine/engine.h"
#include "core/examples/example.h"
#include "core/jpeg/encode.h"
#include "core/jpeg/transcode.h"
#include "core/shards/crc32c.h"
#include "core/sources/record_source.h"
#include "core/threads/pool.h"
#include "core/threads/share_work.h"
#include "tests/libjpeg_reference.h"
#include "tests/photo.h"
#include "tests/shard.h"
#include "tests/transforms.h"

// Sanitizers reserve more of the address space than any limit leaves.
#if defined(__linux__) && !defined(STOKER_SANITIZE_ADDRESS) && !defined(STOKER_SANITIZE_THREAD)
namespace stoker {
namespace {

constexpr int kGood = 42;

// Lets this process map `spare` more bytes than it has mapped now.
void leave(rlim_t spare) {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit limit{pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + spare, RLIM_INFINITY};
  ::setrlimit(RLIMIT_AS, &limit);
}

void leave_all() {
  const rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  ::setrlimit(RLIMIT_AS, &limit);
}

// What `act` returns in a child; -1 if it was killed.
template <typename Act>
int in_child(const Act& act) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(act());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The same in a child with so much spare memory.
template <typename Act>
int with_spare_bytes(rlim_t spare, const Act& act) {
  return in_child([&] {
    leave(spare);
    return act();
  });
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

// Buffers of 96 MiB, of which a batch fills a little: more than glibc keeps for the small allocations of a
// thread.
EngineSpec large_batches() {
  EngineSpec spec;
  spec.transforms = {tests::transform("RandomResizedCrop", {512, 512})};
  spec.batch_size = 128;
  spec.threads = 8;
  return spec;
}

// The checksum of the pixels of all samples; nothing where something had no memory.
std::optional<uint32_t> batch_of(BatchEngine& engine, uint64_t samples) {
  try {
    BatchRequest request;
    for (uint64_t i = 0; i < samples; ++i) request.samples.push_back({{i, kWholeImage}, i, i});
    engine.submit(std::move(request));
    std::optional<Batch> batch;
    while (!batch) batch = engine.next(std::chrono::milliseconds(100));
    if (!batch->failures.empty()) std::rethrow_exception(batch->failures.front().error);
    return crc32c({batch->images[0].get(), samples * 512 * 512 * kRgbBytes});
  } catch (const std::bad_alloc&) {
    engine.drop_pending();
    return std::nullopt;
  }
}

TEST_CASE("an engine goes on after batches without memory") {
  std::vector<std::string> payloads;
  for (int i = 0; i < 12; ++i) {
    const std::vector<uint8_t> jpeg = i % 2 == 0 ? tests::jpeg({120, 90}, {}, 3, i)
                                                 : tests::reference_jpeg(tests::waves({120, 90}, 3, i),
                                                                         {120, 90}, 3, {.progressive = true});
    payloads.push_back(write_example({{"image", BytesValues{jpeg}}, {"label", Int64Values{int64_t{i}}}}));
  }
  const tests::Shard shard(payloads);
  RecordKeys keys;
  keys.image = "image";
  keys.label.key = "label";
  const auto source = std::make_shared<RecordSource>(shard.records(), keys, PayloadCheck::kOn);
  const auto whole = [&] {
    BatchEngine engine(source, large_batches());
    return batch_of(engine, payloads.size());
  };
  const std::optional<uint32_t> expected = whole();
  REQUIRE(expected);
  // Nothing is left, a little more than nothing, or a little more than one or two buffers.
  for (const rlim_t buffers : {0, 1, 2}) {
    for (const rlim_t more : {0, 100'000, 400'000, 1'000'000, 2'000'000, 4'000'000}) {
      CAPTURE(buffers);
      CAPTURE(more);
      const int code = in_child([&] {
        BatchEngine engine(source, large_batches());
        leave(buffers * (rlim_t{96} << 20) + more);
        for (int i = 0; i < 3; ++i) {
          const std::optional<uint32_t> seen = batch_of(engine, payloads.size());
          if (seen && seen != expected) return 1;
        }
        leave_all();
        return batch_of(engine, payloads.size()) == expected ? kGood : 2;
      });
      CHECK(code == kGood);
    }
  }
}

}  // namespace
}  // namespace stoker
#endif

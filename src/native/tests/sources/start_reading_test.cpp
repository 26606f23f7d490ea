#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "core/base/errors.h"
#include "core/sources/concatenation.h"
#include "core/sources/file_set.h"
#include "core/sources/node_cache.h"
#include "core/sources/record_source.h"
#include "tests/counted_source.h"
#include "tests/shard.h"

namespace stoker {
namespace {

using namespace std::chrono_literals;

// A file and which pages of it are in memory. Where the file system keeps all its files in memory, all are.
class Pages {
 public:
  explicit Pages(const std::string& path) : file_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    REQUIRE(file_.get() >= 0);
    size_ = static_cast<size_t>(::lseek(file_.get(), 0, SEEK_END));
    mapping_ = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file_.get(), 0);
    REQUIRE(mapping_ != MAP_FAILED);
  }
  ~Pages() { ::munmap(mapping_, size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  void drop() const {
    REQUIRE(::fsync(file_.get()) == 0);
    REQUIRE(::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_DONTNEED) == 0);
  }

  // Whether all pages of a stretch are there.
  bool has(uint64_t offset, uint64_t length) const {
    const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> there((size_ + page - 1) / page);
    REQUIRE(::mincore(mapping_, size_, there.data()) == 0);
    for (uint64_t i = offset / page; i < (offset + length + page - 1) / page; ++i) {
      if ((there[i] & 1) == 0) return false;
    }
    return true;
  }

  bool come(uint64_t offset, uint64_t length) const {
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while (!has(offset, length) && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(1ms);
    return has(offset, length);
  }

 private:
  FileDescriptor file_;
  size_t size_ = 0;
  void* mapping_ = nullptr;
};

constexpr uint64_t kEach = 300'000;

TEST_CASE("records that are started come into memory") {
  const tests::Shard shard({std::string(kEach, 'a'), std::string(kEach, 'b'), std::string(kEach, 'c')});
  const auto source = std::make_shared<RecordSource>(shard.records(), RecordKeys{}, PayloadCheck::kOn);
  const Concatenation twice({{source, 0}, {source, 0}});
  const Pages pages(shard.path());
  constexpr uint64_t kFrame = kEach + kFrameBytes;
  for (const uint64_t number : {0, 1, 2, 4}) {
    pages.drop();
    CHECK(twice.start_reading(number) == kFrame);
    CHECK(pages.come(number % 3 * kFrame, kFrame));
  }
  CHECK_THROWS_AS(source->start_reading(3), Error);
}

TEST_CASE("image files and members of archives that are started come into memory") {
  const tests::TemporaryFile image(std::string(kEach, 'i')), archive(std::string(3 * kEach, 't'));
  FileList list;
  list.names = image.path() + "memberlong";
  const auto named = static_cast<int64_t>(image.path().size());
  list.starts = {0, named, named + 6, named + 10};
  list.labels = {0, 0, 0};
  list.sizes = {kEach, kEach, 9 * kEach};
  list.archives = {archive.path()};
  list.archive_of = {-1, 0, 0};
  list.offsets = {0, kEach, 2 * kEach};
  const FileSet files(list);
  const Pages of_image(image.path()), of_archive(archive.path());
  of_image.drop();
  of_archive.drop();
  CHECK(files.start_reading(0) == kEach);
  CHECK(of_image.come(0, kEach));
  CHECK(files.start_reading(1) == kEach);
  CHECK(of_archive.come(kEach, kEach));
  CHECK(files.start_reading(2) == kEach);  // what there is of it
  std::remove(image.path().c_str());
  CHECK_THROWS_AS(files.start_reading(0), Error);
}

TEST_CASE("of a long stretch only the first bytes are started") {
  const tests::TemporaryFile file("short");
  REQUIRE(::truncate(file.path().c_str(), 2 * kMostStarted) == 0);
  const RandomAccessFile opened(file.path());
  CHECK(opened.start_reading(0, UINT64_MAX) == kMostStarted);
  CHECK(opened.start_reading(2 * kMostStarted - 5, UINT64_MAX) == 5);
  CHECK(opened.start_reading(2 * kMostStarted, 1) == 0);
  CHECK(opened.start_reading(UINT64_MAX, UINT64_MAX) == 0);
}

TEST_CASE("samples of a node cache are started there, and others in their source") {
  const tests::TemporaryFile file(""), counter(std::string(8, '\0'));
  const tests::Shard shard({std::string(kEach, 'a'), std::string(kEach, 'b')});
  const auto source = std::make_shared<RecordSource>(shard.records(), RecordKeys{}, PayloadCheck::kOn);
  REQUIRE(::truncate(file.path().c_str(), 2 * (kEach + kFrameBytes)) == 0);
  const auto cache = std::make_shared<NodeCacheFile>(::open(file.path().c_str(), O_RDWR | O_CLOEXEC),
                                                     ::open(counter.path().c_str(), O_RDWR | O_CLOEXEC),
                                                     uint64_t{1} << 30, std::vector<uint64_t>{kEach, kEach});
  const CachedSource cached(source, cache);
  CHECK(tests::fetched(cached, 1) == std::vector<uint8_t>(kEach, 'b'));
  const Pages of_cache(file.path()), of_shard(shard.path());
  of_cache.drop();
  of_shard.drop();
  constexpr uint64_t kFrame = kEach + kFrameBytes;
  CHECK(cached.start_reading(1) == kFrame);
  CHECK(of_cache.come(kFrame, kFrame));
  CHECK(cached.start_reading(0) == kFrame);
  CHECK(of_shard.come(0, kFrame));
}

}  // namespace
}  // namespace stoker

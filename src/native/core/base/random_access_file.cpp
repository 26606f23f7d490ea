#include "core/base/random_access_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>

#include "core/base/errors.h"

namespace stoker {
namespace {

constexpr size_t kMostRead = size_t{1} << 30;  // macOS refuses reads of 2 GiB and more

[[noreturn]] void fail(const std::string& name, int number) {
  throw Error(ErrorCode::kIo, std::generic_category().message(number),
              {.path = name, .record = kUnknown, .offset = kUnknown, .source = {}}, number);
}

int open_for_reading(const std::string& path) {
  int descriptor = -1;
  do {  // O_NONBLOCK: a named pipe must be refused, not waited for
    descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

// Of what was just opened, or errno says why it could not be.
uint64_t regular_size(int descriptor, const std::string& name) {
  struct stat status{};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0) fail(name, errno);
  if (!S_ISREG(status.st_mode)) fail(name, S_ISDIR(status.st_mode) ? EISDIR : ESPIPE);
  return static_cast<uint64_t>(status.st_size);
}

std::atomic<uint32_t> files_mapped{0};

// With a limited address space nothing is mapped: mappings would leave less for the rest of the program.
bool is_space_limited() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::optional<size_t> read_at(int descriptor, uint64_t offset, std::span<uint8_t> out) {
  size_t done = 0;
  while (done < out.size()) {
    if (offset > static_cast<uint64_t>(std::numeric_limits<off_t>::max()) - done) return done;
    const size_t piece = std::min(out.size() - done, kMostRead);
    const ssize_t got = ::pread(descriptor, out.data() + done, piece, static_cast<off_t>(offset + done));
    if (got == 0) break;
    if (got > 0) {
      done += static_cast<size_t>(got);
    } else if (errno != EINTR) {
      return std::nullopt;
    }
  }
  return done;
}

uint64_t start_reading(int descriptor, uint64_t offset, uint64_t length) {
#if defined(POSIX_FADV_WILLNEED)
  // Linux takes no more of a request than the device reads ahead, which is most often this much.
  constexpr uint64_t kPiece = uint64_t{128} << 10;
  if (offset > static_cast<uint64_t>(std::numeric_limits<off_t>::max()) - kMostStarted) return 0;
  const uint64_t wanted = std::min(length, kMostStarted);
  for (uint64_t done = 0; done < wanted; done += kPiece) {
    const auto piece = static_cast<off_t>(std::min(kPiece, wanted - done));
    if (::posix_fadvise(descriptor, static_cast<off_t>(offset + done), piece, POSIX_FADV_WILLNEED) != 0)
      return 0;
  }
  return wanted;
#else
  static_cast<void>(descriptor), static_cast<void>(offset), static_cast<void>(length);
  return 0;
#endif
}

RandomAccessFile::RandomAccessFile(const std::string& path, std::string name)
    : name_(name.empty() ? path : std::move(name)),
      descriptor_(open_for_reading(path)),
      size_(regular_size(descriptor_.get(), name_)) {}

RandomAccessFile::RandomAccessFile(int descriptor, std::string name)
    : name_(std::move(name)), descriptor_(descriptor), size_(regular_size(descriptor, name_)) {}

RandomAccessFile::~RandomAccessFile() {
  const uint8_t* there = mapping_.load();
  if (there == nullptr) return;
  ::munmap(const_cast<uint8_t*>(there), size_);
  --files_mapped;
}

std::span<const uint8_t> RandomAccessFile::mapped() const {
  if (const uint8_t* there = mapping_.load(std::memory_order_acquire)) return {there, size_};
  if (asked_.load(std::memory_order_relaxed) >= kMappedAt) return {};  // refused, or being mapped
  if (++asked_ != kMappedAt || size_ == 0 || is_space_limited()) return {};
  if (++files_mapped <= kMostMapped) {
    void* mapping = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor_.get(), 0);
    if (mapping != MAP_FAILED) {
      mapping_.store(static_cast<const uint8_t*>(mapping), std::memory_order_release);
      return {static_cast<const uint8_t*>(mapping), size_};
    }
  }
  --files_mapped;
  return {};
}

size_t RandomAccessFile::read_at(uint64_t offset, std::span<uint8_t> out) const {
  const auto got = stoker::read_at(descriptor_.get(), offset, out);
  if (!got) fail(name_, errno);
  return *got;
}

bool RandomAccessFile::has_hole(uint64_t offset, uint64_t length) const {
  if (length <= kMostHoleBytes || offset > size_ || length > size_ - offset) return false;
  const auto end = static_cast<off_t>(offset + length);
  uint64_t missing = 0;
  for (auto at = static_cast<off_t>(offset); at < end && missing <= kMostHoleBytes;) {
    const off_t hole = ::lseek(descriptor_.get(), at, SEEK_HOLE);
    if (hole < 0 || hole >= end) break;
    const off_t data = ::lseek(descriptor_.get(), hole, SEEK_DATA);
    if (data < 0 && errno != ENXIO) break;
    at = data < 0 ? end : std::min(data, end);  // ENXIO: nothing but a hole follows
    missing += static_cast<uint64_t>(at - hole);
  }
  return missing > kMostHoleBytes;
}

}  // namespace stoker

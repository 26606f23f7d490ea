// A file that lives in memory, so that what a target tries are the core's own reads.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <span>
#include <string>

#include "fuzz/invariant.h"

namespace stoker::fuzz {

class MemoryFile {
 public:
  explicit MemoryFile(std::span<const uint8_t> bytes) : descriptor_(::memfd_create("file", MFD_CLOEXEC)) {
    require(descriptor_ >= 0);
    require(::pwrite(descriptor_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

  // Bytes beyond what was written are zeros, or are cut off.
  void resize(uint64_t bytes) const { require(::ftruncate(descriptor_, static_cast<off_t>(bytes)) == 0); }

  // Another descriptor of the same file, for an owner that closes it.
  int another() const {
    const int copy = ::dup(descriptor_);
    require(copy >= 0);
    return copy;
  }

 private:
  int descriptor_;
};

}  // namespace stoker::fuzz

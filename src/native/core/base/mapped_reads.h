// Which way a thread reads files of this machine: mapped, or by position.
#pragma once

#include <cstdint>

namespace stoker {

// Mapped memory is faster where a file is in the memory of the system, and slower where it is not: the system
// then reads page by page, or far more than is wanted. So a thread reads mapped files for as long as nothing
// has to be fetched for it, and by position for a while when something had to.
class MappedReads {
 public:
  // Whether the last read could be a mapped one.
  bool on() const noexcept { return mapped_; }

  // Whether the next read may be a mapped one.
  bool now() noexcept {
    if (left_ == 0) look();
    --left_;
    return mapped_;
  }

 private:
  static constexpr uint32_t kMostMapped = 32;  // reads between two looks, which take two system calls
  static constexpr uint32_t kLeastOther = 64;
  static constexpr uint32_t kMostOther = 1 << 16;

  void look() noexcept;

  bool mapped_ = false;
  uint32_t left_ = 0;  // reads until the next look
  uint32_t trust_ = 1;
  uint32_t others_ = kLeastOther;  // reads by position after the next fetch
  int64_t fetches_ = 0;            // of pages from files, for this thread
};

}  // namespace stoker

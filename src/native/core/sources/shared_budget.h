// A number of bytes that processes use up together, counted in a small file.
#pragma once

#include <cstdint>
#include <mutex>

#include "core/base/random_access_file.h"

namespace stoker {

// The file holds 8 bytes, least significant first: how many bytes are used. Every change is made under an
// exclusive flock() of the file, so the holder of that lock may set it. The file is read and written,
// never mapped: a file cut short must not kill a process.
class SharedBudget {
 public:
  enum class Answer {
    kTaken,   // the bytes are counted as used
    kFull,    // they would not fit
    kBusy,    // others held the lock for longer than it is worth to wait for it
    kFailed,  // the file cannot be locked, read or written, or holds no number
  };

  // Takes over the descriptor of the file, which must not be shared with another process or object: the lock
  // belongs to what open() made.
  SharedBudget(int descriptor, uint64_t budget) : file_(descriptor), budget_(budget) {}

  uint64_t budget() const { return budget_; }

  // Takes bytes of what is left. From any thread.
  Answer take(uint64_t bytes);

  // How many are used; 0 when the file holds no number.
  uint64_t used() const;

 private:
  Answer take_alone(uint64_t bytes);   // by the only thread here that does
  Answer take_locked(uint64_t bytes);  // and with the lock of the file

  FileDescriptor file_;
  uint64_t budget_;
  std::mutex mutex_;  // flock() does not keep the threads of one process apart
};

}  // namespace stoker

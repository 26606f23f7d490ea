// Files of this machine, read at any position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace stoker {

// A descriptor that is closed with its owner.
class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~FileDescriptor();
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return descriptor_; }
  // The caller's from now on.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

// Fills `out` with the bytes of a file from `offset` on and returns how many there were: fewer than asked for
// only at the end of the file. Nothing if the system refused; errno says why.
std::optional<size_t> read_at(int descriptor, uint64_t offset, std::span<uint8_t> out);

// What of a file that was never written is believed to be zeros, at most.
inline constexpr uint64_t kMostHoleBytes = uint64_t{32} << 20;

// A file open for positioned reads: it has no position of its own, so any number of threads may read at once.
// Bytes are copied and never mapped: a file cut short under a reader gives an error instead of a signal.
class RandomAccessFile {
 public:
  // `name` is what messages call it; `path` when empty. Throws kIo when `path` cannot be opened or is not a
  // regular file.
  explicit RandomAccessFile(const std::string& path, std::string name = {});

  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }  // bytes, when it was opened

  // As the function above. Throws kIo.
  size_t read_at(uint64_t offset, std::span<uint8_t> out) const;

  // Whether more than kMostHoleBytes of a stretch were never written: the file claims to be longer than it
  // is. Always false for a stretch that is no longer than that, and where the file system cannot say.
  bool has_hole(uint64_t offset, uint64_t length) const;

 private:
  std::string name_;
  FileDescriptor descriptor_;
  uint64_t size_ = 0;
};

}  // namespace stoker

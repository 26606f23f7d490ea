// Files of this machine, read at any position.
#pragma once

#include <atomic>
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
  // Gives the descriptor to the caller.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

// Fills `out` with the bytes of a file from `offset` on and returns how many there were: fewer than asked for
// only at the end of the file. Nothing if the system refused; errno says why.
std::optional<size_t> read_at(int descriptor, uint64_t offset, std::span<uint8_t> out);

// Has the system begin to read a stretch of a file into memory, its first kMostStarted bytes if it is longer,
// and does not wait for it. Returns how many bytes those are; 0 where the system cannot.
inline constexpr uint64_t kMostStarted = uint64_t{16} << 20;
uint64_t start_reading(int descriptor, uint64_t offset, uint64_t length);

// The most bytes of a file that may never have been written and are read as zeros.
inline constexpr uint64_t kMostHoleBytes = uint64_t{32} << 20;

// Calls after which a file is mapped: what is read a few times, such as one of more shards than may be open
// at a time, is not worth it.
inline constexpr uint32_t kMappedAt = 8;

// Files mapped at a time, at most: a process may have 65,530 mappings, and others need some too.
inline constexpr uint32_t kMostMapped = 8192;

// A file open for positioned reads: it has no position of its own, so any number of threads may read at once.
class RandomAccessFile {
 public:
  // `name` is what messages call it; `path` when empty. Throws kIo when `path` cannot be opened or is not a
  // regular file.
  explicit RandomAccessFile(const std::string& path, std::string name = {});
  // The same of a file that is open. Takes over the descriptor, also when it throws.
  RandomAccessFile(int descriptor, std::string name);
  ~RandomAccessFile();
  RandomAccessFile(const RandomAccessFile&) = delete;
  RandomAccessFile& operator=(const RandomAccessFile&) = delete;

  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }  // bytes, when it was opened
  int descriptor() const { return descriptor_.get(); }

  // As the function above. Throws kIo.
  size_t read_at(uint64_t offset, std::span<uint8_t> out) const;

  // As the function above, of what the file has of the stretch.
  uint64_t start_reading(uint64_t offset, uint64_t length) const {
    if (offset >= size_) return 0;
    return stoker::start_reading(descriptor_.get(), offset,
                                 length < size_ - offset ? length : size_ - offset);
  }

  // The size() bytes in memory, mapped at the kMappedAt-th call; nothing before that, and nothing if the
  // system maps no more files, or memory is limited. They change when the file does, even between two reads
  // of one byte, and must only be read through guarded(). They live as long as this object.
  std::span<const uint8_t> mapped() const;

  // Whether more than kMostHoleBytes of a stretch were never written: the file claims to be longer than it
  // is. Always false for a stretch that is no longer than that, and where the file system cannot say.
  bool has_hole(uint64_t offset, uint64_t length) const;

 private:
  std::string name_;
  FileDescriptor descriptor_;
  uint64_t size_ = 0;
  mutable std::atomic<uint32_t> asked_{0};  // for the mapping, up to kMappedAt
  mutable std::atomic<const uint8_t*> mapping_{nullptr};
};

}  // namespace stoker

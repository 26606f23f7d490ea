// Reuse of large buffers, so that steady state allocates and page-faults nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/process.h"

namespace stoker {

// Buffers of one size. A taken buffer returns when its last reference dies, even if the pool is gone by then.
// At most `spare` idle ones are kept; how many are out at a time is up to their users. They begin at
// multiples of kAlignment bytes: TensorFlow and JAX take over such memory as it is, and copy any other.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  static constexpr size_t kAlignment = 64;

  BufferPool(size_t size_bytes, size_t spare) : size_bytes_(size_bytes), spare_(spare) {
    idle_.reserve(spare);  // a buffer comes back where nothing may throw
  }

  std::shared_ptr<uint8_t[]> take();

  size_t size_bytes() const { return size_bytes_; }

 private:
  struct Release {
    size_t bytes;
    void operator()(uint8_t* buffer) const;
  };
  using Buffer = std::unique_ptr<uint8_t[], Release>;

  void put_back(Buffer buffer);

  const size_t size_bytes_;
  const size_t spare_;
  const uint64_t process_ = process_number();  // in another one, buffers are freed
  std::mutex mutex_;
  std::vector<Buffer> idle_;
};

}  // namespace stoker

// Reuse of large buffers, so that steady state allocates and page-faults nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace stoker {

// Buffers of one size. A taken buffer returns when its last reference dies, even if the pool is gone by then.
// At most `spare` idle ones are kept; how many are out at a time is up to their users.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  BufferPool(size_t size_bytes, size_t spare) : size_bytes_(size_bytes), spare_(spare) {}

  std::shared_ptr<uint8_t[]> take();

 private:
  void give_back(std::unique_ptr<uint8_t[]> buffer);

  const size_t size_bytes_;
  const size_t spare_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<uint8_t[]>> idle_;
};

}  // namespace stoker

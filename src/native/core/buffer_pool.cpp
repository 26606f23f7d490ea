#include "core/buffer_pool.h"

#include <utility>

namespace stoker {

std::shared_ptr<uint8_t[]> BufferPool::take() {
  std::unique_ptr<uint8_t[]> buffer;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      buffer = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!buffer) buffer = std::make_unique_for_overwrite<uint8_t[]>(size_bytes_);
  return {buffer.release(), [home = weak_from_this()](uint8_t* bytes) {
            std::unique_ptr<uint8_t[]> returned(bytes);
            if (const auto pool = home.lock()) pool->give_back(std::move(returned));
          }};
}

void BufferPool::give_back(std::unique_ptr<uint8_t[]> buffer) {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < spare_) idle_.push_back(std::move(buffer));
}

}  // namespace stoker

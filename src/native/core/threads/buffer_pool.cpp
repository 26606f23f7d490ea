#include "core/threads/buffer_pool.h"

#include <new>
#include <utility>

namespace stoker {

void BufferPool::Release::operator()(uint8_t* bytes) const {
  ::operator delete[](bytes, std::align_val_t{kAlignment});
}

std::shared_ptr<uint8_t[]> BufferPool::take() {
  Buffer buffer;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      buffer = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!buffer) {
    buffer.reset(static_cast<uint8_t*>(::operator new[](size_bytes_, std::align_val_t{kAlignment})));
  }
  return {buffer.release(), [home = weak_from_this()](uint8_t* bytes) {
            Buffer returned(bytes);
            const auto pool = home.lock();
            if (pool && pool->process_ == process_number()) pool->put_back(std::move(returned));
          }};
}

void BufferPool::put_back(Buffer buffer) {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < spare_) idle_.push_back(std::move(buffer));
}

}  // namespace stoker

#include "core/threads/buffer_pool.h"

#include <sys/mman.h>

#include <new>
#include <utility>

namespace stoker {
namespace {

// Writing to pages of this size costs fewer searches for where they lie.
constexpr size_t kHugePage = size_t{2} << 20;

std::align_val_t alignment(size_t bytes) {
  return std::align_val_t{bytes < kHugePage ? BufferPool::kAlignment : kHugePage};
}

uint8_t* allocate(size_t bytes) {
  auto* buffer = static_cast<uint8_t*>(::operator new[](bytes, alignment(bytes)));
#ifdef MADV_HUGEPAGE
  // Only what lies in the buffer as a whole: a refusal costs nothing but time.
  if (bytes >= kHugePage) ::madvise(buffer, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
  return buffer;
}

}  // namespace

void BufferPool::Release::operator()(uint8_t* buffer) const {
  ::operator delete[](buffer, alignment(bytes));
}

std::shared_ptr<uint8_t[]> BufferPool::take() {
  Buffer buffer(nullptr, {size_bytes_});
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      buffer = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!buffer) buffer.reset(allocate(size_bytes_));
  return {buffer.release(), [home = weak_from_this(), size = size_bytes_](uint8_t* bytes) {
            Buffer returned(bytes, {size});
            const auto pool = home.lock();
            if (pool && pool->process_ == process_number()) pool->put_back(std::move(returned));
          }};
}

void BufferPool::put_back(Buffer buffer) {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < spare_) idle_.push_back(std::move(buffer));
}

}  // namespace stoker

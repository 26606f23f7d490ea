#include "tests/failing_memory.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
// jpeglib.h needs size_t and FILE declared before it.
#include <jpeglib.h>
#ifdef STOKER_SHARED_WEBP
#include <webp/decode.h>
#endif

namespace stoker::tests {
namespace {

constexpr size_t kMost = size_t{1} << 40;  // more is given by no system, and sanitizers end the process

// Atomic, since every thread allocates.
std::atomic<int64_t> live{0};
std::atomic<bool> short_of_memory{false};
std::atomic<Shortage> kind{Shortage::kOnce};
std::atomic<int64_t> left{0};  // until the one that fails
std::atomic<uint64_t> failed{0};

bool fails() {
  if (!short_of_memory) return false;
  const int64_t before = left.fetch_sub(1);
  if (before > 1 || (before < 1 && kind == Shortage::kOnce)) return false;
  ++failed;
  return true;
}

void* allocate(size_t size, size_t alignment) noexcept {
  if (size > kMost || fails()) return nullptr;
  void* memory = nullptr;
  if (alignment == 0) {
    memory = std::malloc(size == 0 ? 1 : size);
  } else if (::posix_memalign(&memory, alignment < sizeof(void*) ? sizeof(void*) : alignment, size) != 0) {
    memory = nullptr;
  }
  if (memory != nullptr) ++live;
  return memory;
}

void* allocate_or_throw(size_t size, size_t alignment = 0) {
  void* const memory = allocate(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void release(void* memory) noexcept {
  if (memory != nullptr) --live;
  std::free(memory);
}

}  // namespace

void begin_shortage(uint64_t number, Shortage shortage) {
  failed = 0;
  left = static_cast<int64_t>(number);
  kind = shortage;
  short_of_memory = true;
}

uint64_t end_shortage() {
  short_of_memory = false;
  return failed;
}

int64_t live_allocations() {
  return live;
}

}  // namespace stoker::tests

using stoker::tests::allocate;
using stoker::tests::allocate_or_throw;
using stoker::tests::kMost;
using stoker::tests::live;
using stoker::tests::release;

void* operator new(size_t size) {
  return allocate_or_throw(size);
}
void* operator new[](size_t size) {
  return allocate_or_throw(size);
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 0);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 0);
}
void* operator new(size_t size, std::align_val_t a) {
  return allocate_or_throw(size, static_cast<size_t>(a));
}
void* operator new[](size_t size, std::align_val_t a) {
  return allocate_or_throw(size, static_cast<size_t>(a));
}
void* operator new(size_t size, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<size_t>(a));
}
void* operator new[](size_t size, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<size_t>(a));
}
void operator delete(void* memory) noexcept {
  release(memory);
}
void operator delete[](void* memory) noexcept {
  release(memory);
}
void operator delete(void* memory, size_t) noexcept {
  release(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  release(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  release(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  release(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  release(memory);
}
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  release(memory);
}

// All of libjpeg's own memory goes through these (jmemsys.h, which is not installed); where the program has
// them, its library calls them. All eight, so that a static library has no reason to bring its own.
#pragma GCC visibility push(default)
extern "C" {
void* jpeg_get_small(j_common_ptr, size_t size) {
  return allocate(size, 0);
}
void jpeg_free_small(j_common_ptr, void* memory, size_t) {
  release(memory);
}
void* jpeg_get_large(j_common_ptr, size_t size) {
  return allocate(size, 0);
}
void jpeg_free_large(j_common_ptr, void* memory, size_t) {
  release(memory);
}
size_t jpeg_mem_available(j_common_ptr, size_t, size_t most, size_t) {
  return most;
}
void jpeg_open_backing_store(j_common_ptr, void*, long) {
  std::abort();
}
long jpeg_mem_init(j_common_ptr) {
  return 0;
}
void jpeg_mem_term(j_common_ptr) {}

#ifdef STOKER_SHARED_WEBP  // whose own calls lead here; libpng is given its functions by the core
void* WebPSafeMalloc(uint64_t count, size_t size) {
  // Debian 12's 1.2.4 frees what it has not allocated when there is no memory for the tables of an alpha
  // plane.
  constexpr int kSurvives = 0x010600;
  if (WebPGetDecoderVersion() < kSurvives) {
    ++live;
    return std::malloc(static_cast<size_t>(count) * size);
  }
  return size != 0 && count > kMost / size ? nullptr : allocate(static_cast<size_t>(count) * size, 0);
}
void* WebPSafeCalloc(uint64_t count, size_t size) {
  void* const memory = WebPSafeMalloc(count, size);
  if (memory != nullptr) std::memset(memory, 0, static_cast<size_t>(count) * size);
  return memory;
}
void WebPSafeFree(void* memory) {
  release(memory);
}
#endif
}
#pragma GCC visibility pop

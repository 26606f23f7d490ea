// The bytes of one run: what is parsed, and behind it the choices of the target.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stoker::fuzz {

// Choices come last, so that a real file becomes a seed by a few bytes behind it, which scripts/fuzz_seeds.py
// appends.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : left_(data, size) {}

  // 0 when nothing is left.
  uint8_t byte() {
    if (left_.empty()) return 0;
    const uint8_t last = left_.back();
    left_ = left_.first(left_.size() - 1);
    return last;
  }

  uint32_t word() { return static_cast<uint32_t>(byte()) << 8 | byte(); }

  // 0 .. limit - 1.
  int32_t below(int32_t limit) { return static_cast<int32_t>(word() % static_cast<uint32_t>(limit)); }

  // The next `count` bytes as choices of their own, so that what takes more or fewer of them leaves the rest
  // as it is.
  Input choices(size_t count) {
    const Input apart = *this;
    left_ = left_.first(left_.size() - std::min(count, left_.size()));
    return apart;
  }

  // What no choice has taken, in memory of exactly that size: AddressSanitizer sees a byte too many.
  std::vector<uint8_t> rest() const { return {left_.begin(), left_.end()}; }

 private:
  std::span<const uint8_t> left_;
};

}  // namespace stoker::fuzz

// Memory that a thread keeps from image to image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace stoker {

// Grows to the requested size. Nothing is filled in, so the system provides memory only for bytes that are
// written: a size that an image merely claims costs nothing. After an outlier it shrinks again. It begins at
// a multiple of kAlignment, since files are read into it: where the target begins a few bytes further into a
// page than the source, some processors (AMD's Zen 3) take several times as long.
class ScratchBytes {
 public:
  static constexpr size_t kAlignment = 64;

  // At least `size` bytes, which hold anything; earlier ones are lost.
  uint8_t* take(size_t size) {
    if (size > size_ || (size_ > kAlwaysKept && size < size_ / kOutlier)) {
      size_ = 0;
      bytes_.reset();  // first: the two need not be there at once
      bytes_.reset(static_cast<uint8_t*>(::operator new[](size, std::align_val_t{kAlignment})));
      size_ = size;
    }
    return bytes_.get();
  }

  // Frees memory above the minimum, if it may be long until the next take().
  void rest() {
    if (size_ <= kAlwaysKept) return;
    size_ = 0;
    bytes_.reset();
  }

  uint8_t* data() const { return bytes_.get(); }
  size_t size() const { return size_; }

 private:
  static constexpr size_t kAlwaysKept = size_t{16} << 20;  // 2048 x 2048 pixels of RGBX
  static constexpr size_t kOutlier = 4;                    // times what is asked for

  struct Release {
    void operator()(uint8_t* bytes) const { ::operator delete[](bytes, std::align_val_t{kAlignment}); }
  };

  std::unique_ptr<uint8_t[], Release> bytes_;
  size_t size_ = 0;
};

}  // namespace stoker

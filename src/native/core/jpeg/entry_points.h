// Where decoding may begin in the middle of a baseline JPEG without restart markers, as its decoder noted it
// when it passed there before.
//
// A point is only right for the bytes before it. So the points of an image are stored under a key of its
// bytes: their number (modulo 16 MiB) and a CRC-32C over all of them. Other bytes have another key, and find
// no points.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace stoker {

// What is known before an MCU is read.
struct EntryPoint {
  uint32_t byte = 0;  // of the entropy-coded data, stuffing included, in which the next bit is
  uint32_t bit = 0;   // its position there, 0 the top
  std::array<int32_t, 3> predictions{};  // of the DC value of each component

  friend bool operator==(const EntryPoint&, const EntryPoint&) = default;
};

// In one word, so that threads need no lock. 0: it does not fit, as behind the first 32 MiB of the data.
uint64_t pack(const EntryPoint& point);
EntryPoint unpack(uint64_t word);

class EntryTable;

// The points of one image, numbered from 0. For one thread; others may have the same image.
class EntryPoints {
 public:
  EntryPoints() = default;  // of an image of which nothing is kept

  // How many there may be.
  size_t most() const;

  std::optional<EntryPoint> find(size_t number) const;
  // For an image that has `count` points, which decides how much memory they take.
  void note(size_t number, size_t count, const EntryPoint& point);
  // For good: one of them was wrong.
  void forget();

 private:
  friend class EntryTable;
  EntryPoints(EntryTable& table, size_t slot, uint64_t key) : table_(&table), slot_(slot), key_(key) {}

  EntryTable* table_ = nullptr;
  size_t slot_ = 0;
  uint64_t key_ = 0;
};

// The points of the images of one source, from any number of threads at once, without a lock.
class EntryTable {
 public:
  static constexpr uint64_t kBytes = uint64_t{128} << 20;
  static constexpr uint64_t kFewestPoints = 12, kMostPoints = 240;  // of an image

  // Takes memory as images come, for each what its points need: in the end `budget` bytes at most, and a
  // pointer for each slot. Many images have fewer points each; if there are more than fit, several share a
  // slot, and the first to come keeps it.
  explicit EntryTable(uint64_t images, uint64_t budget = kBytes);
  ~EntryTable();
  EntryTable(const EntryTable&) = delete;
  EntryTable& operator=(const EntryTable&) = delete;

  // Of image `number`, which comes in so many bytes that have this CRC-32C.
  EntryPoints of(uint64_t number, size_t bytes, uint32_t crc) {
    const uint64_t key = (static_cast<uint64_t>(bytes) << 32 | crc) & (~uint64_t{0} >> kCountBits);
    return {*this, static_cast<size_t>(number % slots_), key};
  }

  // Memory that is taken.
  uint64_t bytes() const;

 private:
  friend class EntryPoints;

  // A block is the points of one image, behind a word of their key and count. That word is there before
  // others see the block, and only changes to kForgotten, of no points: so a point that is there belongs to
  // that key, and each word can be read by itself. A block stays in its slot as long as the table.
  using Word = std::atomic<uint64_t>;
  using Slot = std::atomic<Word*>;
  static constexpr uint64_t kForgotten = 0;
  static constexpr int kCountBits = 8;
  static_assert(kMostPoints >> kCountBits == 0);
  static constexpr size_t kSlotsAPage = 512;

  // Whether the block with this first word has a point of this number, under this key.
  static bool holds(uint64_t head, uint64_t key, size_t number) {
    return head >> kCountBits == key && number < (head & ((1U << kCountBits) - 1));
  }

  size_t pages() const { return (slots_ + kSlotsAPage - 1) / kSlotsAPage; }
  // Null where nothing was noted yet.
  Word* find(size_t slot) const;
  // The existing block, or else a new one; null if there is no memory.
  Word* make(size_t slot, uint64_t key, size_t count);

  size_t points_;
  size_t slots_;
  std::unique_ptr<std::atomic<Slot*>[]> pages_;
  std::atomic<uint64_t> taken_{0};  // bytes of pages and blocks
};

}  // namespace stoker

#include "core/jpeg/entry_points.h"

#include <algorithm>
#include <new>
#include <utility>

namespace stoker {
namespace {

// Of 8-bit images a DC value is at most 2040 of its smallest steps.
constexpr uint32_t kPredictionBits = 12;
constexpr uint32_t kBitBits = 3;
constexpr uint32_t kByteBits = 25;
constexpr int32_t kMostPrediction = 1 << (kPredictionBits - 1);

// Null where there is no memory.
template <typename T>
std::unique_ptr<T[]> zeros(size_t count) {
  return std::unique_ptr<T[]>(new (std::nothrow) T[count]());
}

// False, and frees the value, if another thread was first.
template <typename T>
bool publish(std::atomic<T*>& target, std::unique_ptr<T[]> value) {
  T* none = nullptr;
  if (!target.compare_exchange_strong(none, value.get(), std::memory_order_acq_rel)) return false;
  static_cast<void>(value.release());
  return true;
}

}  // namespace

uint64_t pack(const EntryPoint& point) {
  if (point.byte >> kByteBits != 0) return 0;
  uint64_t word = uint64_t{point.byte} << kBitBits | point.bit;
  for (const int32_t prediction : point.predictions) {
    if (prediction < -kMostPrediction || prediction >= kMostPrediction) return 0;
    word = word << kPredictionBits | static_cast<uint32_t>(prediction + kMostPrediction);
  }
  return word;
}

EntryPoint unpack(uint64_t word) {
  EntryPoint point;
  for (size_t i = point.predictions.size(); i-- > 0; word >>= kPredictionBits) {
    point.predictions[i] = static_cast<int32_t>(word & (2 * kMostPrediction - 1)) - kMostPrediction;
  }
  point.bit = static_cast<uint32_t>(word & ((1U << kBitBits) - 1));
  point.byte = static_cast<uint32_t>(word >> kBitBits);
  return point;
}

size_t EntryPoints::most() const {
  return table_ == nullptr ? 0 : table_->points_;
}

std::optional<EntryPoint> EntryPoints::find(size_t number) const {
  const EntryTable::Word* block = table_ == nullptr ? nullptr : table_->find(slot_);
  if (block == nullptr) return std::nullopt;
  if (!EntryTable::holds(block[0].load(std::memory_order_relaxed), key_, number)) return std::nullopt;
  const uint64_t word = block[1 + number].load(std::memory_order_relaxed);
  if (word == 0) return std::nullopt;
  return unpack(word);
}

void EntryPoints::note(size_t number, size_t count, const EntryPoint& point) {
  const uint64_t word = pack(point);
  EntryTable::Word* block = table_ == nullptr || word == 0 ? nullptr : table_->make(slot_, key_, count);
  if (block == nullptr) return;
  if (!EntryTable::holds(block[0].load(std::memory_order_relaxed), key_, number)) return;
  block[1 + number].store(word, std::memory_order_relaxed);
}

void EntryPoints::forget() {
  EntryTable::Word* block = table_ == nullptr ? nullptr : table_->find(slot_);
  if (block != nullptr && EntryTable::holds(block[0].load(std::memory_order_relaxed), key_, 0)) {
    block[0].store(EntryTable::kForgotten, std::memory_order_relaxed);
  }
}

EntryTable::EntryTable(uint64_t images, uint64_t budget) {
  const uint64_t words = budget / sizeof(Word), known = std::max<uint64_t>(images, 1);
  points_ = static_cast<size_t>(std::clamp(words / known, kFewestPoints + 1, kMostPoints + 1)) - 1;
  slots_ = static_cast<size_t>(std::clamp<uint64_t>(words / (points_ + 1), 1, known));
  pages_ = std::make_unique<std::atomic<Slot*>[]>(pages());
}

EntryTable::~EntryTable() {
  for (size_t i = 0; i < pages(); ++i) {
    const std::unique_ptr<Slot[]> page(pages_[i].load(std::memory_order_relaxed));
    for (size_t j = 0; page && j < kSlotsAPage; ++j) delete[] page[j].load(std::memory_order_relaxed);
  }
}

uint64_t EntryTable::bytes() const {
  return pages() * sizeof(pages_[0]) + taken_.load(std::memory_order_relaxed);
}

EntryTable::Word* EntryTable::find(size_t slot) const {
  const Slot* page = pages_[slot / kSlotsAPage].load(std::memory_order_acquire);
  return page == nullptr ? nullptr : page[slot % kSlotsAPage].load(std::memory_order_acquire);
}

EntryTable::Word* EntryTable::make(size_t slot, uint64_t key, size_t count) {
  if (Word* there = find(slot)) return there;
  std::atomic<Slot*>& pointer = pages_[slot / kSlotsAPage];
  if (pointer.load(std::memory_order_acquire) == nullptr) {
    auto slots = zeros<Slot>(kSlotsAPage);
    if (!slots) return nullptr;
    if (publish(pointer, std::move(slots))) {
      taken_.fetch_add(kSlotsAPage * sizeof(Slot), std::memory_order_relaxed);
    }
  }
  Slot* page = pointer.load(std::memory_order_acquire);
  count = std::min(count, points_);  // so all slots together stay within the budget
  auto block = zeros<Word>(1 + count);
  if (!block) return nullptr;
  block[0].store(key << kCountBits | count, std::memory_order_relaxed);
  if (publish(page[slot % kSlotsAPage], std::move(block))) {
    taken_.fetch_add((1 + count) * sizeof(Word), std::memory_order_relaxed);
  }
  return find(slot);
}

}  // namespace stoker

// Objects that are made on first use and have a cost, such as open files.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/process.h"

namespace stoker {

// A table of `T`, each made when it is first asked for. The first objects stay as long as the table, up to
// `budget`: they are found without a lock and without counting references, so any number of threads may ask
// for the same one at full speed. Later objects share a quarter of the budget under a lock, and the oldest is
// evicted first.
//
// An order that is random in every epoch uses all objects equally often, so keeping the first is as good as
// keeping the latest; an order that goes through them one after the other finds the latest.
//
// A forked process shares the objects that stay, which never change, and has later objects of its own.
template <typename T>
class CachedTable {
 public:
  // At most `budget` of whatever the costs of add() count in, beside what a caller still holds.
  explicit CachedTable(uint64_t budget)
      : most_passing_(std::max<uint64_t>(budget / 4, 1)), left_(budget - std::min(budget, most_passing_)) {}

  // Not while get() runs.
  void add() { staying_.emplace_back(); }

  size_t size() const { return staying_.size(); }

  // Number `index`; from `make()`, which gives a std::unique_ptr<const T>, unless it is there. `cost(const
  // T&)` tells what keeping it takes. Both run without the lock, at times in two threads for the same index.
  // What is returned must not outlive the table. Throws what `make` throws.
  template <typename Make, typename Cost>
  std::shared_ptr<const T> get(size_t index, const Make& make, const Cost& cost) const {
    if (const T* there = staying_[index].load()) return borrow(there);
    Turns& turns = turns_.get();
    {
      const std::lock_guard lock(turns.mutex);
      if (const auto entry = turns.passing.find(index); entry != turns.passing.end()) {
        return entry->second.thing;
      }
    }
    std::unique_ptr<const T> thing = make();
    const uint64_t price = cost(*thing);  // in a statement of its own: arguments are made in any order
    return keep(turns, index, std::move(thing), price);
  }

 private:
  // Owns what stays. An atomic that a vector may move while it is not read.
  class Slot {
   public:
    Slot() = default;
    Slot(Slot&& other) noexcept : thing_(other.thing_.exchange(nullptr)) {}
    Slot& operator=(Slot&&) = delete;
    ~Slot() { delete load(); }
    const T* load() const { return thing_.load(std::memory_order_acquire); }
    void store(std::unique_ptr<const T> thing) { thing_.store(thing.release(), std::memory_order_release); }

   private:
    std::atomic<const T*> thing_{nullptr};
  };
  struct Passing {
    std::shared_ptr<const T> thing;
    uint64_t cost;
  };
  struct Turns {
    std::mutex mutex;
    uint64_t used = 0;
    std::unordered_map<size_t, Passing> passing;
    std::deque<size_t> order;  // the longest there first
  };

  // A pointer that owns nothing, so that copying it touches no counter.
  static std::shared_ptr<const T> borrow(const T* thing) {
    return std::shared_ptr<const T>(std::shared_ptr<const T>(), thing);
  }

  std::shared_ptr<const T> keep(Turns& turns, size_t index, std::unique_ptr<const T> thing,
                                uint64_t cost) const {
    std::vector<std::shared_ptr<const T>> gone;  // closed outside the lock
    const std::lock_guard lock(turns.mutex);
    if (const T* there = staying_[index].load()) return borrow(there);
    if (cost <= left_) {
      left_ -= cost;
      staying_[index].store(std::move(thing));
      return borrow(staying_[index].load());
    }
    if (const auto entry = turns.passing.find(index); entry != turns.passing.end()) {
      return entry->second.thing;
    }
    std::shared_ptr<const T> shared = std::move(thing);
    const auto added = turns.passing.emplace(index, Passing{shared, cost}).first;
    try {
      turns.order.push_back(index);
    } catch (...) {
      turns.passing.erase(added);
      throw;
    }
    turns.used += cost;
    while (turns.used > most_passing_ && turns.order.size() > 1) {
      const auto oldest = turns.passing.find(turns.order.front());
      gone.push_back(oldest->second.thing);
      turns.used -= oldest->second.cost;
      turns.order.pop_front();
      turns.passing.erase(oldest);
    }
    return shared;
  }

  const uint64_t most_passing_;
  mutable uint64_t left_;  // of the budget of those that stay; changed under the mutex of the turns
  mutable std::vector<Slot> staying_;
  PerProcess<Turns> turns_;
};

}  // namespace stoker

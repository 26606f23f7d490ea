// Things that are made on first use and cost something to keep, such as open files.
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

namespace stoker {

// A table of `T`, each made when it is first asked for. The first to come stay for as long as the table, up
// to `budget`: they are found without a lock and without counting references, so any number of threads may
// ask for the same one at full speed. Those behind take turns in a quarter of the budget, the longest there
// first to go, under a lock.
//
// An order that is random in every epoch comes back to all of them equally often, so keeping the first is as
// good as keeping the latest; an order that goes through them one behind the other finds the latest.
template <typename T>
class KeptTable {
 public:
  // At most `budget` of whatever the costs of add() count in, beside what a caller still holds.
  explicit KeptTable(uint64_t budget)
      : turns_(std::max<uint64_t>(budget / 4, 1)), left_(budget - std::min(budget, turns_)) {}

  // Not while get() runs.
  void add() { staying_.emplace_back(); }

  size_t size() const { return staying_.size(); }

  // Number `index`; from `make()`, which gives a std::shared_ptr<const T>, unless it is there. `cost(const
  // T&)` tells what keeping it takes. Both run without the lock, at times in two threads for the same index.
  // What is returned must not outlive the table. Throws what `make` throws.
  template <typename Make, typename Cost>
  std::shared_ptr<const T> get(size_t index, const Make& make, const Cost& cost) const {
    if (const T* there = staying_[index].load()) return borrow(there);
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = passing_.find(index); found != passing_.end()) return found->second.thing;
    }
    std::shared_ptr<const T> made = make();
    const uint64_t price = cost(*made);  // in a statement of its own: arguments are made in any order
    return keep(index, std::move(made), price);
  }

 private:
  // An atomic that a vector may move while it is not read.
  class Slot {
   public:
    Slot() = default;
    Slot(Slot&& other) noexcept : thing_(other.load()) {}
    const T* load() const { return thing_.load(std::memory_order_acquire); }
    void store(const T* thing) { thing_.store(thing, std::memory_order_release); }

   private:
    std::atomic<const T*> thing_{nullptr};
  };
  struct Passing {
    std::shared_ptr<const T> thing;
    uint64_t cost;
  };

  // A pointer that owns nothing, so that copying it touches no counter.
  static std::shared_ptr<const T> borrow(const T* thing) {
    return std::shared_ptr<const T>(std::shared_ptr<const T>(), thing);
  }

  std::shared_ptr<const T> keep(size_t index, std::shared_ptr<const T> made, uint64_t cost) const {
    std::vector<std::shared_ptr<const T>> gone;  // closed outside the lock
    const std::lock_guard lock(mutex_);
    if (const T* there = staying_[index].load()) return borrow(there);
    if (cost <= left_) {
      owned_.push_back(made);
      left_ -= cost;
      staying_[index].store(made.get());
      return made;
    }
    const auto [place, fresh] = passing_.try_emplace(index, Passing{made, cost});
    if (!fresh) return place->second.thing;
    used_ += cost;
    order_.push_back(index);
    while (used_ > turns_ && order_.size() > 1) {
      const auto oldest = passing_.find(order_.front());
      order_.pop_front();
      used_ -= oldest->second.cost;
      gone.push_back(std::move(oldest->second.thing));
      passing_.erase(oldest);
    }
    return made;
  }

  const uint64_t turns_;
  mutable std::vector<Slot> staying_;
  mutable std::mutex mutex_;
  mutable uint64_t left_;  // of the budget of those that stay
  mutable std::vector<std::shared_ptr<const T>> owned_;
  mutable uint64_t used_ = 0;  // by those that take turns
  mutable std::unordered_map<size_t, Passing> passing_;
  mutable std::deque<size_t> order_;  // the longest there first
};

}  // namespace stoker

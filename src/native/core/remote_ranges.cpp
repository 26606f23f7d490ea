#include "core/remote_ranges.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace stoker {
namespace {

struct PlaceHash {
  size_t operator()(const RemotePlace& place) const {
    uint64_t mixed = static_cast<uint64_t>(place.file) * 0x9e3779b97f4a7c15U;
    mixed = (mixed ^ place.offset) * 0xbf58476d1ce4e5b9U;
    return static_cast<size_t>(mixed ^ (mixed >> 31) ^ place.length);
  }
};

Error dropped() {
  return {ErrorCode::kClosed, "These bytes are not wanted any more: the loader is closed or went elsewhere"};
}

}  // namespace

enum class Phase { kQueued, kUnderWay, kHere, kFailed, kDropped };

struct RemoteRanges::Range {
  uint64_t id = 0;
  RemotePlace place;
  uint64_t last_use = 0;
  std::vector<RangePiece> pieces;
  uint64_t uses_left = 0;
  bool urgent = false;
  Phase phase = Phase::kQueued;
  TakenBytes bytes;
  std::optional<Error> error;
  std::condition_variable changed;
};

struct RemoteRanges::State : std::enable_shared_from_this<State> {
  using Shared = std::shared_ptr<Range>;
  // The last reference to bytes takes the mutex when it goes, so it must not go under the mutex: what may
  // hold one is thrown here, which is declared before the lock.
  using Trash = std::vector<Shared>;
  struct Awaited {
    Shared range;
    uint64_t uses;
  };

  explicit State(uint64_t most) : budget(most) {}

  bool fits(uint64_t length) const { return held == 0 || (length <= budget && held <= budget - length); }

  void reserve(uint64_t length) {
    held += length;
    counts.peak_bytes = std::max(counts.peak_bytes, held);
    ++counts.requests;
    counts.bytes += length;
  }

  void give_back(uint64_t length) {
    {
      const std::lock_guard lock(mutex);
      held -= length;
    }
    fetchers.notify_one();
  }

  // Takes a range out of everything; who waits for it hears of it. Under the mutex.
  void drop(const Shared& range, Trash& trash) {
    if (range->phase == Phase::kDropped) return;
    for (const RangePiece& piece : range->pieces) {
      const auto found = awaited.find({range->place.file, piece.offset, piece.length});
      if (found == awaited.end()) continue;
      std::erase_if(found->second, [&](const Awaited& one) { return one.range == range; });
      if (found->second.empty()) awaited.erase(found);
    }
    if (range->phase == Phase::kQueued && !range->urgent) queued_bytes -= range->place.length;
    if (range->phase != Phase::kUnderWay) ranges.erase(range->id);  // what is under way comes back once
    range->phase = Phase::kDropped;
    range->changed.notify_all();
    trash.push_back(range);
  }

  void drop_all(Trash& trash) {
    std::vector<Shared> all;
    for (const auto& [id, range] : ranges) all.push_back(range);
    for (const Shared& range : all) drop(range, trash);
    queue.clear();
    urgent.clear();
    awaited.clear();
    by_last_use.clear();
    planned_uses = released_uses = 0;
    fetchers.notify_all();
    planner.notify_all();
  }

  // One use of a piece that is expected, and its range; nothing if there is none.
  Shared claim(const RemotePlace& place, Trash& trash) {
    const auto found = awaited.find(place);
    if (found == awaited.end()) return nullptr;
    Shared range = found->second.front().range;
    if (--found->second.front().uses == 0) found->second.erase(found->second.begin());
    if (found->second.empty()) awaited.erase(found);
    trash.push_back(range);
    if (--range->uses_left == 0 && range->phase > Phase::kUnderWay) ranges.erase(range->id);
    return range;
  }

  // The range that was given out under this number and has not come back yet; nothing if there is none.
  Shared under_way(uint64_t id) const {
    const auto found = ranges.find(id);
    if (found == ranges.end()) return nullptr;
    const Phase phase = found->second->phase;
    return phase == Phase::kUnderWay || phase == Phase::kDropped ? found->second : nullptr;
  }

  // Where a range comes from that can be given out now; nothing if there is none.
  std::deque<Shared>* ready() {
    for (auto* from : {&urgent, &queue}) {
      while (!from->empty() && from->front()->phase != Phase::kQueued) from->pop_front();
    }
    if (!urgent.empty()) return &urgent;
    return !queue.empty() && fits(queue.front()->place.length) ? &queue : nullptr;
  }

  std::optional<FetchJob> pop() {
    std::deque<Shared>* const from = ready();
    if (from == nullptr) return std::nullopt;
    if (from == &queue) {
      queued_bytes -= queue.front()->place.length;
      planner.notify_all();
    }
    const FetchJob job = issue(*from);
    if (ready() != nullptr) fetchers.notify_one();
    return job;
  }

  FetchJob issue(std::deque<Shared>& from) {
    const Shared range = std::move(from.front());
    from.pop_front();
    range->phase = Phase::kUnderWay;
    range->changed.notify_all();
    reserve(range->place.length);
    return {range->id, range->place};
  }

  // `range` has come to an end. Under the mutex.
  void settle(const Shared& range, Phase phase, Trash& trash) {
    range->phase = phase;
    range->changed.notify_all();
    if (range->uses_left != 0) return;
    ranges.erase(range->id);
    trash.push_back(range);
  }

  // A range that was not given out in time, and that everybody reads piece by piece. Under the mutex.
  void give_up(const Shared& range) {
    queued_bytes -= range->place.length;
    ranges.erase(range->id);
    range->phase = Phase::kFailed;
    range->changed.notify_all();
  }

  const uint64_t budget;
  mutable std::mutex mutex;
  std::condition_variable fetchers;
  std::condition_variable planner;
  std::deque<Shared> queue;
  std::deque<Shared> urgent;
  std::unordered_map<uint64_t, Shared> ranges;  // by id, until they are let go of
  std::unordered_map<RemotePlace, std::vector<Awaited>, PlaceHash> awaited;
  std::multimap<uint64_t, uint64_t> by_last_use;  // to the id
  uint64_t next_id = 0;
  uint64_t held = 0;
  uint64_t queued_bytes = 0;
  uint64_t planned_uses = 0;
  uint64_t released_uses = 0;
  bool closed = false;
  RangeCounts counts;
};

RemoteRanges::RemoteRanges(uint64_t budget)
    : state_(std::make_shared<State>(budget)), process_(::getpid()) {}

RemoteRanges::~RemoteRanges() {
  if (process_ != ::getpid()) {  // forked: somebody who is not here may have held the mutex
    static_cast<void>(new std::shared_ptr<State>(std::move(state_)));
    return;
  }
  close();
}

void RemoteRanges::expect(std::vector<ExpectedRange> ranges, uint64_t planned_uses) {
  std::vector<State::Shared> made;
  for (ExpectedRange& expected : ranges) {
    auto range = std::make_shared<Range>();
    range->place = expected.place;
    range->last_use = expected.last_use;
    range->pieces = std::move(expected.pieces);
    for (const RangePiece& piece : range->pieces) {
      const uint64_t begin = piece.offset - expected.place.offset;
      if (piece.offset < expected.place.offset || begin > expected.place.length ||
          piece.length > expected.place.length - begin) {
        throw Error(ErrorCode::kBadArgument, "A piece lies outside of its range");
      }
      range->uses_left += piece.uses;
    }
    if (range->uses_left != 0) made.push_back(std::move(range));
  }
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (state.closed) return;
  for (const State::Shared& range : made) {
    range->id = state.next_id++;
    for (const RangePiece& piece : range->pieces) {
      if (piece.uses == 0) continue;
      state.awaited[{range->place.file, piece.offset, piece.length}].push_back({range, piece.uses});
    }
    state.ranges.emplace(range->id, range);
    state.by_last_use.emplace(range->last_use, range->id);
    state.queue.push_back(range);
    state.queued_bytes += range->place.length;
  }
  state.planned_uses = planned_uses;
  state.fetchers.notify_one();
}

bool RemoteRanges::wait_for_appetite(uint64_t bytes, uint64_t uses, std::chrono::milliseconds patience) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  const auto hungry = [&] {
    return state.closed || (state.queued_bytes < bytes &&
                            state.planned_uses - std::min(state.planned_uses, state.released_uses) < uses);
  };
  return state.planner.wait_for(lock, patience, hungry) && !state.closed;
}

std::optional<FetchJob> RemoteRanges::next(std::chrono::milliseconds patience) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  std::optional<FetchJob> job;
  state.fetchers.wait_for(lock, patience, [&] { return state.closed || (job = state.pop()); });
  return job;
}

void RemoteRanges::deliver(uint64_t id, std::span<const uint8_t> bytes, std::shared_ptr<const void> held) {
  State::Trash trash;
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  const State::Shared range = state.under_way(id);
  if (!range) return;
  const uint64_t length = range->place.length;
  // Whoever has the bytes last gives their room back.
  const auto parting = std::make_shared<Range>();  // takes what may go out of the lock
  trash = {parting, range};
  const auto let_go = [owner = state_, held = std::move(held), length](const void*) mutable {
    held.reset();
    owner->give_back(length);
  };
  parting->bytes = {bytes, std::shared_ptr<const void>(state_.get(), let_go)};
  if (range->phase == Phase::kDropped) {
    state.ranges.erase(id);
    return;
  }
  if (bytes.size() != length) {
    range->error = Error(ErrorCode::kStorage, std::to_string(bytes.size()) + " bytes came where " +
                                                  std::to_string(length) + " were asked for");
    return state.settle(range, Phase::kFailed, trash);
  }
  range->bytes = parting->bytes;
  state.settle(range, Phase::kHere, trash);
}

void RemoteRanges::fail(uint64_t id, const Error& error) {
  State::Trash trash;
  State& state = *state_;
  {
    const std::lock_guard lock(state.mutex);
    const State::Shared range = state.under_way(id);
    if (!range) return;
    state.held -= range->place.length;
    if (range->phase == Phase::kDropped) {
      state.ranges.erase(id);
    } else {
      range->error = error;
      state.settle(range, Phase::kFailed, trash);
    }
  }
  state.fetchers.notify_one();
}

TakenBytes RemoteRanges::take(const RemotePlace& place) {
  State::Trash trash;
  State& state = *state_;
  {
    std::unique_lock lock(state.mutex);
    if (state.closed) throw dropped();
    if (const State::Shared range = state.claim(place, trash)) {
      range->changed.wait_for(lock, kPatience, [&] { return range->phase != Phase::kQueued; });
      if (range->phase != Phase::kQueued) {
        range->changed.wait(lock, [&] { return range->phase != Phase::kUnderWay; });
        if (range->phase == Phase::kDropped) throw dropped();
        if (range->phase == Phase::kHere) {
          const size_t begin = place.offset - range->place.offset;
          return {range->bytes.bytes.subspan(begin, place.length), range->bytes.held};
        }
        if (range->error && place == range->place) throw Error(*range->error);
      } else if (range->uses_left == 0) {
        state.give_up(range);  // nobody is left who would take it
      }
    }
  }
  return read_now(place);
}

TakenBytes RemoteRanges::read_now(const RemotePlace& place) {
  const auto range = std::make_shared<Range>();
  range->place = place;
  range->urgent = true;
  State::Trash trash{range};
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (state.closed) throw dropped();
  range->id = state.next_id++;
  state.ranges.emplace(range->id, range);
  state.urgent.push_back(range);
  ++state.counts.unplanned;
  state.fetchers.notify_one();
  range->changed.wait(lock, [&] { return range->phase > Phase::kUnderWay; });
  if (range->phase == Phase::kHere) return range->bytes;
  throw range->error ? Error(*range->error) : dropped();
}

void RemoteRanges::count_reread() {
  const std::lock_guard lock(state_->mutex);
  ++state_->counts.rereads;
}

void RemoteRanges::release_until(uint64_t use) {
  State::Trash trash;
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  state.released_uses = std::max(state.released_uses, use);
  while (!state.by_last_use.empty() && state.by_last_use.begin()->first < use) {
    const auto found = state.ranges.find(state.by_last_use.begin()->second);
    state.by_last_use.erase(state.by_last_use.begin());
    if (found != state.ranges.end()) state.drop(State::Shared(found->second), trash);
  }
  state.planner.notify_all();
  state.fetchers.notify_one();
}

void RemoteRanges::forget() {
  State::Trash trash;
  const std::lock_guard lock(state_->mutex);
  state_->drop_all(trash);
}

void RemoteRanges::close() {
  State::Trash trash;
  const std::lock_guard lock(state_->mutex);
  state_->closed = true;
  state_->drop_all(trash);
}

bool RemoteRanges::closed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->closed;
}

RangeCounts RemoteRanges::counts() const {
  const std::lock_guard lock(state_->mutex);
  RangeCounts counts = state_->counts;
  counts.held_bytes = state_->held;
  return counts;
}

}  // namespace stoker

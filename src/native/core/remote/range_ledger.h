// The state of RemoteRanges. All of it belongs to its mutex, and every function is called under it,
// unless it says otherwise.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/errors.h"
#include "core/base/process.h"
#include "core/remote/remote_ranges.h"

namespace stoker {

enum class RangePhase { kQueued, kUnderWay, kHere, kFailed, kDropped };

// One range, on its way from the queue to its last use.
struct AheadRange {
  uint64_t id = 0;  // 0: none yet
  RemoteSpan span;
  uint64_t last_use = 0;
  std::vector<RangePiece> pieces;
  uint64_t uses_left = 0;
  bool urgent = false;
  RangePhase phase = RangePhase::kQueued;
  TakenBytes bytes;
  std::optional<Error> error;  // of one that failed; nothing: there was no memory
  std::condition_variable changed;
};

struct SpanHash {
  size_t operator()(const RemoteSpan& span) const;
};

struct RangeLedger {
  using Shared = std::shared_ptr<AheadRange>;
  using Ranges = std::map<uint64_t, Shared>;  // by id
  // Releasing the last reference to bytes takes the mutex, so it must not happen under the mutex. Objects
  // that may hold such a reference are moved here, which takes no memory; this is declared before the lock.
  using Released = Ranges;
  struct Awaited {
    Shared range;
    uint64_t uses;
  };

  explicit RangeLedger(uint64_t most) : budget(most) {}

  bool fits(uint64_t length) const { return held == 0 || (length <= budget && held <= budget - length); }

  void reserve(uint64_t length);

  // Queues a range that is expected. Where this throws, the range may be there in part, until it is dropped.
  void add(const Shared& range);

  // Takes the mutex.
  void release_bytes(uint64_t length);

  // Takes a range out of everything and wakes those who wait for it.
  void drop(const Shared& range, Released& released);

  void drop_all(Released& released);

  // One use of a piece that is expected, and its range, which the caller keeps longer than the mutex; nothing
  // if there is none.
  Shared claim(const RemoteSpan& span);

  // The range that was given out under this number and has not come back yet; nothing if there is none.
  Shared under_way(uint64_t id) const;

  // Where a range comes from that can be given out now; nothing if there is none.
  std::deque<Shared>* ready();

  std::optional<FetchJob> pop();

  FetchJob issue(std::deque<Shared>& from);

  // `range` has come to an end.
  void settle(const Shared& range, RangePhase phase, Released& released);

  // A range that was not given out in time, and that everybody reads piece by piece.
  void give_up(const Shared& range);

  const uint64_t process = process_number();
  const uint64_t budget;
  mutable std::mutex mutex;
  std::condition_variable fetchers;
  std::condition_variable planner;
  std::deque<Shared> queue;
  std::deque<Shared> urgent;
  Ranges ranges;  // until they are released
  std::unordered_map<RemoteSpan, std::vector<Awaited>, SpanHash> awaited;
  std::multimap<uint64_t, uint64_t> by_last_use;  // to the id
  uint64_t next_id = 1;
  uint64_t held = 0;
  uint64_t queued_bytes = 0;
  uint64_t planned_uses = 0;
  uint64_t released_uses = 0;
  bool closed = false;
  RangeCounts counts;
};

}  // namespace stoker

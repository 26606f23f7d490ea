#include "core/remote/remote_ranges.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "core/remote/range_ledger.h"

namespace stoker {
namespace {

// What keeps delivered bytes alive. Their share of the budget is released with the last reference, which
// takes the mutex.
struct ReservedBytes {
  std::shared_ptr<RangeLedger> owner;
  std::shared_ptr<const void> held;
  uint64_t length = 0;  // of the share; 0: none yet

  ReservedBytes(std::shared_ptr<RangeLedger> ledger, std::shared_ptr<const void> bytes)
      : owner(std::move(ledger)), held(std::move(bytes)) {}
  ~ReservedBytes() {
    held.reset();
    if (length != 0 && owner->process == process_number()) owner->release_bytes(length);
  }
  ReservedBytes(const ReservedBytes&) = delete;
  ReservedBytes& operator=(const ReservedBytes&) = delete;
};

Error dropped() {
  return {ErrorCode::kClosed, "These bytes are not wanted any more: the loader is closed or went elsewhere"};
}

// Throws kBadArgument unless the range can lie in a file, the pieces in the range, and the uses can be
// counted.
void check_range(const ExpectedRange& range) {
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const RemoteSpan& span = range.span;
  if (span.file < 0 || span.offset > kMost || span.length > kMost - span.offset) {
    throw Error(ErrorCode::kBadArgument, std::to_string(span.length) + " bytes at " +
                                             std::to_string(span.offset) + " of file " +
                                             std::to_string(span.file) + " cannot be a range of a file");
  }
  uint64_t uses = 0;
  for (const RangePiece& piece : range.pieces) {
    const uint64_t begin = piece.offset - span.offset;
    if (piece.offset < span.offset || begin > span.length || piece.length > span.length - begin) {
      throw Error(ErrorCode::kBadArgument, "A piece lies outside of its range");
    }
    if (piece.uses > kMost - uses) {
      throw Error(ErrorCode::kBadArgument, "A range has more uses than can be counted");
    }
    uses += piece.uses;
  }
}

}  // namespace

RemoteRanges::RemoteRanges(uint64_t budget) : state_(std::make_shared<RangeLedger>(budget)) {}

RemoteRanges::~RemoteRanges() {
  if (state_->process == process_number()) {
    close();
  } else {
    static_cast<void>(new (std::nothrow)
                          std::shared_ptr<RangeLedger>(std::move(state_)));  // the parent's, left as it is
  }
}

RangeLedger& RemoteRanges::ledger() const {
  if (state_->process == process_number()) return *state_;
  throw Error(ErrorCode::kClosed,
              "These bytes were read ahead before a fork, and threads do not survive one");
}

void RemoteRanges::expect(std::vector<ExpectedRange> ranges, uint64_t planned_uses) {
  std::vector<RangeLedger::Shared> added;
  for (ExpectedRange& expected : ranges) {
    check_range(expected);
    auto range = std::make_shared<AheadRange>();
    range->span = expected.span;
    range->last_use = expected.last_use;
    range->pieces = std::move(expected.pieces);
    for (const RangePiece& piece : range->pieces) range->uses_left += piece.uses;
    if (range->uses_left != 0) added.push_back(std::move(range));
  }
  RangeLedger::Released released;
  RangeLedger& state = ledger();
  const std::lock_guard lock(state.mutex);
  if (state.closed) return;
  try {
    for (const RangeLedger::Shared& range : added) state.add(range);
  } catch (...) {  // no memory: all of them, or none
    for (const RangeLedger::Shared& range : added) {
      if (range->id != 0) state.drop(range, released);
    }
    throw;
  }
  state.planned_uses = planned_uses;
  state.fetchers.notify_one();
}

bool RemoteRanges::wait_for_demand(uint64_t bytes, uint64_t uses, std::chrono::milliseconds timeout) {
  RangeLedger& state = ledger();
  std::unique_lock lock(state.mutex);
  const auto wanted = [&] {
    return state.closed || (state.queued_bytes < bytes &&
                            state.planned_uses - std::min(state.planned_uses, state.released_uses) < uses);
  };
  return state.planner.wait_for(lock, timeout, wanted) && !state.closed;
}

std::optional<FetchJob> RemoteRanges::next(std::chrono::milliseconds timeout) {
  RangeLedger& state = ledger();
  std::unique_lock lock(state.mutex);
  std::optional<FetchJob> job;
  state.fetchers.wait_for(lock, timeout, [&] { return state.closed || (job = state.pop()); });
  return job;
}

void RemoteRanges::deliver(uint64_t id, std::span<const uint8_t> bytes, std::shared_ptr<const void> held) {
  std::shared_ptr<ReservedBytes> reserved;  // freed after the lock, if it is not used
  try {
    reserved = std::make_shared<ReservedBytes>(state_, std::move(held));
  } catch (const std::bad_alloc&) {
    return fail(id, std::nullopt);
  }
  RangeLedger::Released released;
  RangeLedger::Shared range;
  RangeLedger& state = ledger();
  const std::lock_guard lock(state.mutex);
  range = state.under_way(id);
  if (!range) return;
  const uint64_t length = reserved->length = range->span.length;
  if (range->phase == RangePhase::kDropped) {
    state.ranges.erase(id);
    return;
  }
  if (bytes.size() != length) {
    try {
      range->error = Error(ErrorCode::kStorage, std::to_string(bytes.size()) + " bytes came where " +
                                                    std::to_string(length) + " were asked for");
    } catch (const std::bad_alloc&) {  // then this is what is wrong with it
    }
    return state.settle(range, RangePhase::kFailed, released);
  }
  range->bytes = {bytes, reserved};
  state.settle(range, RangePhase::kHere, released);
}

void RemoteRanges::fail(uint64_t id, std::optional<Error> error) {
  RangeLedger::Released released;
  RangeLedger::Shared range;
  RangeLedger& state = ledger();
  {
    const std::lock_guard lock(state.mutex);
    range = state.under_way(id);
    if (!range) return;
    state.held -= range->span.length;
    if (range->phase == RangePhase::kDropped) {
      state.ranges.erase(id);
    } else {
      range->error = std::move(error);
      state.settle(range, RangePhase::kFailed, released);
    }
  }
  state.fetchers.notify_one();
}

TakenBytes RemoteRanges::take(const RemoteSpan& span) {
  RangeLedger::Shared range;
  RangeLedger& state = ledger();
  {
    std::unique_lock lock(state.mutex);
    if (state.closed) throw dropped();
    range = state.claim(span);
    if (range) {
      range->changed.wait_for(lock, kTimeout, [&] { return range->phase != RangePhase::kQueued; });
      if (range->phase != RangePhase::kQueued) {
        range->changed.wait(lock, [&] { return range->phase != RangePhase::kUnderWay; });
        if (range->phase == RangePhase::kDropped) throw dropped();
        if (range->phase == RangePhase::kHere) {
          const size_t begin = span.offset - range->span.offset;
          return {range->bytes.bytes.subspan(begin, span.length), range->bytes.held};
        }
        if (range->error && span == range->span) throw Error(*range->error);
      } else if (range->uses_left == 0) {
        state.give_up(range);  // no use of it is left
      }
    }
  }
  return read_now(span);
}

TakenBytes RemoteRanges::read_now(const RemoteSpan& span) {
  const auto range = std::make_shared<AheadRange>();
  range->span = span;
  range->urgent = true;
  RangeLedger::Ranges single;  // so that under the mutex only `urgent` takes memory
  single.emplace(0, range);
  RangeLedger& state = ledger();
  std::unique_lock lock(state.mutex);
  if (state.closed) throw dropped();
  state.urgent.push_back(range);
  auto own = single.extract(single.begin());
  range->id = own.key() = state.next_id++;
  state.ranges.insert(std::move(own));
  ++state.counts.unplanned;
  state.fetchers.notify_one();
  range->changed.wait(lock, [&] { return range->phase > RangePhase::kUnderWay; });
  if (range->phase == RangePhase::kHere) return range->bytes;
  if (range->phase == RangePhase::kDropped) throw dropped();
  if (!range->error) throw std::bad_alloc();
  throw Error(*range->error);
}

void RemoteRanges::count_reread() {
  RangeLedger& state = ledger();
  const std::lock_guard lock(state.mutex);
  ++state.counts.rereads;
}

void RemoteRanges::release_until(uint64_t use) {
  RangeLedger::Released released;
  RangeLedger& state = ledger();
  const std::lock_guard lock(state.mutex);
  state.released_uses = std::max(state.released_uses, use);
  while (!state.by_last_use.empty() && state.by_last_use.begin()->first < use) {
    const auto oldest = state.ranges.find(state.by_last_use.begin()->second);
    state.by_last_use.erase(state.by_last_use.begin());
    if (oldest != state.ranges.end()) state.drop(RangeLedger::Shared(oldest->second), released);
  }
  state.planner.notify_all();
  state.fetchers.notify_one();
}

void RemoteRanges::forget() {
  RangeLedger::Released released;
  RangeLedger& state = ledger();
  const std::lock_guard lock(state.mutex);
  state.drop_all(released);
}

void RemoteRanges::close() {
  RangeLedger::Released released;
  RangeLedger& state = ledger();
  const std::lock_guard lock(state.mutex);
  state.closed = true;
  state.drop_all(released);
}

bool RemoteRanges::closed() const {
  const RangeLedger& state = ledger();
  const std::lock_guard lock(state.mutex);
  return state.closed;
}

RangeCounts RemoteRanges::counts() const {
  const RangeLedger& state = ledger();
  const std::lock_guard lock(state.mutex);
  RangeCounts counts = state.counts;
  counts.held_bytes = state.held;
  return counts;
}

}  // namespace stoker

#include "core/remote/range_ledger.h"

#include <algorithm>
#include <utility>

namespace stoker {

size_t PlaceHash::operator()(const RemotePlace& place) const {
  uint64_t mixed = static_cast<uint64_t>(place.file) * 0x9e3779b97f4a7c15U;
  mixed = (mixed ^ place.offset) * 0xbf58476d1ce4e5b9U;
  return static_cast<size_t>(mixed ^ (mixed >> 31) ^ place.length);
}

void RangeLedger::reserve(uint64_t length) {
  held += length;
  counts.peak_bytes = std::max(counts.peak_bytes, held);
  ++counts.requests;
  counts.bytes += length;
}

void RangeLedger::release_bytes(uint64_t length) {
  {
    const std::lock_guard lock(mutex);
    held -= length;
  }
  fetchers.notify_one();
}

void RangeLedger::drop(const Shared& range, Released& released) {
  if (range->phase == RangePhase::kDropped) return;
  for (const RangePiece& piece : range->pieces) {
    const auto found = awaited.find({range->place.file, piece.offset, piece.length});
    if (found == awaited.end()) continue;
    std::erase_if(found->second, [&](const Awaited& one) { return one.range == range; });
    if (found->second.empty()) awaited.erase(found);
  }
  if (range->phase == RangePhase::kQueued && !range->urgent) queued_bytes -= range->place.length;
  if (range->phase != RangePhase::kUnderWay) ranges.erase(range->id);  // what is under way comes back once
  range->phase = RangePhase::kDropped;
  range->changed.notify_all();
  released.push_back(range);
}

void RangeLedger::drop_all(Released& released) {
  std::vector<Shared> all;
  for (const auto& [id, range] : ranges) all.push_back(range);
  for (const Shared& range : all) drop(range, released);
  queue.clear();
  urgent.clear();
  awaited.clear();
  by_last_use.clear();
  planned_uses = released_uses = 0;
  fetchers.notify_all();
  planner.notify_all();
}

RangeLedger::Shared RangeLedger::claim(const RemotePlace& place, Released& released) {
  const auto found = awaited.find(place);
  if (found == awaited.end()) return nullptr;
  Shared range = found->second.front().range;
  if (--found->second.front().uses == 0) found->second.erase(found->second.begin());
  if (found->second.empty()) awaited.erase(found);
  released.push_back(range);
  if (--range->uses_left == 0 && range->phase > RangePhase::kUnderWay) ranges.erase(range->id);
  return range;
}

RangeLedger::Shared RangeLedger::under_way(uint64_t id) const {
  const auto found = ranges.find(id);
  if (found == ranges.end()) return nullptr;
  const RangePhase phase = found->second->phase;
  return phase == RangePhase::kUnderWay || phase == RangePhase::kDropped ? found->second : nullptr;
}

std::deque<RangeLedger::Shared>* RangeLedger::ready() {
  for (auto* from : {&urgent, &queue}) {
    while (!from->empty() && from->front()->phase != RangePhase::kQueued) from->pop_front();
  }
  if (!urgent.empty()) return &urgent;
  return !queue.empty() && fits(queue.front()->place.length) ? &queue : nullptr;
}

std::optional<FetchJob> RangeLedger::pop() {
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

FetchJob RangeLedger::issue(std::deque<Shared>& from) {
  const Shared range = std::move(from.front());
  from.pop_front();
  range->phase = RangePhase::kUnderWay;
  range->changed.notify_all();
  reserve(range->place.length);
  return {range->id, range->place};
}

void RangeLedger::settle(const Shared& range, RangePhase phase, Released& released) {
  range->phase = phase;
  range->changed.notify_all();
  if (range->uses_left != 0) return;
  ranges.erase(range->id);
  released.push_back(range);
}

void RangeLedger::give_up(const Shared& range) {
  queued_bytes -= range->place.length;
  ranges.erase(range->id);
  range->phase = RangePhase::kFailed;
  range->changed.notify_all();
}

}  // namespace stoker

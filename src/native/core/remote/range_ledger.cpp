#include "core/remote/range_ledger.h"

#include <algorithm>
#include <utility>

namespace stoker {

size_t SpanHash::operator()(const RemoteSpan& span) const {
  uint64_t mixed = static_cast<uint64_t>(span.file) * 0x9e3779b97f4a7c15U;
  mixed = (mixed ^ span.offset) * 0xbf58476d1ce4e5b9U;
  return static_cast<size_t>(mixed ^ (mixed >> 31) ^ span.length);
}

void RangeLedger::reserve(uint64_t length) {
  held += length;
  counts.peak_bytes = std::max(counts.peak_bytes, held);
  ++counts.requests;
  counts.bytes += length;
}

void RangeLedger::add(const Shared& range) {
  const uint64_t id = next_id++;
  ranges.emplace(id, range);
  range->id = id;
  queued_bytes += range->span.length;
  queue.push_back(range);
  by_last_use.emplace(range->last_use, id);
  for (const RangePiece& piece : range->pieces) {
    if (piece.uses == 0) continue;
    awaited[{range->span.file, piece.offset, piece.length}].push_back({range, piece.uses});
  }
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
    const auto entry = awaited.find({range->span.file, piece.offset, piece.length});
    if (entry == awaited.end()) continue;
    std::erase_if(entry->second, [&](const Awaited& use) { return use.range == range; });
    if (entry->second.empty()) awaited.erase(entry);
  }
  if (range->phase == RangePhase::kQueued && !range->urgent) queued_bytes -= range->span.length;
  const bool comes_back = range->phase == RangePhase::kUnderWay;
  range->phase = RangePhase::kDropped;
  range->changed.notify_all();
  if (!comes_back) released.insert(ranges.extract(range->id));
}

void RangeLedger::drop_all(Released& released) {
  for (auto at = ranges.begin(); at != ranges.end();) {
    const Shared& range = at->second;
    ++at;
    drop(range, released);
  }
  queue.clear();
  urgent.clear();
  awaited.clear();
  by_last_use.clear();
  planned_uses = released_uses = 0;
  fetchers.notify_all();
  planner.notify_all();
}

RangeLedger::Shared RangeLedger::claim(const RemoteSpan& span) {
  const auto entry = awaited.find(span);
  if (entry == awaited.end()) return nullptr;
  Shared range = entry->second.front().range;
  if (--entry->second.front().uses == 0) entry->second.erase(entry->second.begin());
  if (entry->second.empty()) awaited.erase(entry);
  if (--range->uses_left == 0 && range->phase > RangePhase::kUnderWay) ranges.erase(range->id);
  return range;
}

RangeLedger::Shared RangeLedger::under_way(uint64_t id) const {
  const auto entry = ranges.find(id);
  if (entry == ranges.end()) return nullptr;
  const RangePhase phase = entry->second->phase;
  return phase == RangePhase::kUnderWay || phase == RangePhase::kDropped ? entry->second : nullptr;
}

std::deque<RangeLedger::Shared>* RangeLedger::ready() {
  for (auto* from : {&urgent, &queue}) {
    while (!from->empty() && from->front()->phase != RangePhase::kQueued) from->pop_front();
  }
  if (!urgent.empty()) return &urgent;
  return !queue.empty() && fits(queue.front()->span.length) ? &queue : nullptr;
}

std::optional<FetchJob> RangeLedger::pop() {
  std::deque<Shared>* const from = ready();
  if (from == nullptr) return std::nullopt;
  if (from == &queue) {
    queued_bytes -= queue.front()->span.length;
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
  reserve(range->span.length);
  return {range->id, range->span};
}

void RangeLedger::settle(const Shared& range, RangePhase phase, Released& released) {
  range->phase = phase;
  range->changed.notify_all();
  if (range->uses_left == 0) released.insert(ranges.extract(range->id));
}

void RangeLedger::give_up(const Shared& range) {
  queued_bytes -= range->span.length;
  ranges.erase(range->id);
  range->phase = RangePhase::kFailed;
  range->changed.notify_all();
}

}  // namespace stoker

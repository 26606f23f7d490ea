// Plans of ranges with any numbers, and answers that come in any order, twice or not at all: a plan is
// refused, or its ranges are given out once each within the budget; and nothing is held in the end.
#include "core/remote/remote_ranges.h"

#include <limits>
#include <set>
#include <vector>

#include "fuzz/input.h"
#include "fuzz/invariant.h"

namespace {

using std::chrono::milliseconds;
using stoker::fuzz::Input;
using stoker::fuzz::require;

constexpr uint64_t kBudget = 1000;
constexpr uint64_t kMostDelivered = 4096;

// Small of seven times in eight.
uint64_t some_number(Input& input) {
  const uint8_t choice = input.byte();
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  switch (choice % 32) {
    case 0:
      return kMost;
    case 1:
      return kMost + 1;
    case 2:
      return std::numeric_limits<uint64_t>::max();
    case 3:
      return kMost - choice;
    default:
      return choice;
  }
}

stoker::ExpectedRange some_range(Input& input) {
  stoker::ExpectedRange range;
  range.span = {static_cast<int64_t>(some_number(input) % 4) - (input.byte() == 0 ? 1 : 0),
                some_number(input), some_number(input)};
  range.last_use = some_number(input);
  const size_t pieces = input.byte() % 4;
  for (size_t i = 0; i < pieces; ++i) {
    const bool inside = input.byte() % 8 != 0;
    const uint64_t skipped = some_number(input), length = some_number(input);
    const uint64_t begin = inside && range.span.length != 0 ? skipped % range.span.length : skipped;
    const uint64_t left = range.span.length - begin;
    range.pieces.push_back({range.span.offset + begin, inside && left != 0 ? length % left + 1 : length,
                            input.byte() % 16 == 0 ? some_number(input) : 1});
  }
  return range;
}

void answer(stoker::RemoteRanges& ranges, Input& input, uint64_t id, uint64_t length) {
  const uint8_t choice = input.byte();
  if (choice % 4 == 0 || length > kMostDelivered) {
    return ranges.fail(id, stoker::Error(stoker::ErrorCode::kStorage, "refused"));
  }
  const auto bytes = std::make_shared<std::vector<uint8_t>>(length + (choice % 4 == 1 ? 1 : 0));
  ranges.deliver(id, *bytes, bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  stoker::RemoteRanges ranges(kBudget);
  std::vector<stoker::FetchJob> under_way;
  std::set<uint64_t> given;
  const auto take_job = [&] {
    const auto job = ranges.next(milliseconds(0));
    if (!job) return false;
    require(given.insert(job->id).second);
    const uint64_t held = ranges.counts().held_bytes;
    require(held <= kBudget || held == job->span.length);
    under_way.push_back(*job);
    return true;
  };
  for (int steps = 0; steps < 24; ++steps) {
    const uint8_t step = input.byte();
    switch (step % 8) {
      case 0:
      case 1: {
        std::vector<stoker::ExpectedRange> plan;
        for (int i = 0; i < 1 + step % 3; ++i) plan.push_back(some_range(input));
        stoker::fuzz::succeeds([&] { ranges.expect(plan, some_number(input)); });
        break;
      }
      case 2:
      case 3:
        take_job();
        break;
      case 4:
      case 5: {
        if (under_way.empty()) break;
        const size_t which = input.byte() % under_way.size();
        answer(ranges, input, under_way[which].id, under_way[which].span.length);
        if (step < 200)
          under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(which));  // else twice
        break;
      }
      case 6:
        ranges.release_until(some_number(input));
        break;
      case 7:
        answer(ranges, input, some_number(input), 5);
        if (step > 240) ranges.forget();
        break;
    }
    static_cast<void>(ranges.wait_for_demand(some_number(input), some_number(input), milliseconds(0)));
  }
  ranges.close();
  for (const stoker::FetchJob& job : under_way) {
    ranges.fail(job.id, stoker::Error(stoker::ErrorCode::kStorage, "refused"));
  }
  require(ranges.counts().held_bytes == 0);
  return 0;
}

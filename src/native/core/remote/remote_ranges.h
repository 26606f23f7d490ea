// Byte ranges of remote files that are fetched ahead of their use, under a budget.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/errors.h"
#include "core/remote/remote_reader.h"

namespace stoker {

// A part of a range that will be taken, and how often.
struct RangePiece {
  uint64_t offset = 0;  // in the file
  uint64_t length = 0;
  uint64_t uses = 1;
};

// What is to be fetched in one go. Uses are numbered in the order in which they come.
struct ExpectedRange {
  RemoteSpan span;
  uint64_t last_use = 0;
  std::vector<RangePiece> pieces;  // inside `span`; no two are the same
};

// What a thread that fetches has to do.
struct FetchJob {
  uint64_t id = 0;
  RemoteSpan span;
};

// What has been done. Bytes and requests are counted when they are asked for.
struct RangeCounts {
  uint64_t held_bytes = 0;  // asked for and not released yet
  uint64_t peak_bytes = 0;  // the most there were of those
  uint64_t requests = 0;
  uint64_t bytes = 0;
  uint64_t unplanned = 0;  // requests among them for what was not planned, or did not come in time
  uint64_t rereads = 0;    // pieces whose checksum was wrong
};

struct RangeLedger;

// Threads that fetch call next() and deliver() or fail(); threads that use the bytes call take(). Ranges are
// given out in the order in which they were expected, as long as all bytes that are held fit the budget; when
// none are held, the next range is given out in any case. A range is released with the last of its uses, and
// its bytes live for as long as they are referenced.
//
// No wait for a planned piece lasts forever: if its range is not given out within `kTimeout`, because others
// fill the budget, the piece is read by itself.
class RemoteRanges : public RemoteReader {
 public:
  static constexpr std::chrono::milliseconds kTimeout{250};

  explicit RemoteRanges(uint64_t budget);
  ~RemoteRanges() override;

  // Queues ranges. `planned_uses` is the number of uses that are planned with them and those before, also
  // where nothing has to be fetched. Throws kBadArgument for a piece outside of its range.
  void expect(std::vector<ExpectedRange> ranges, uint64_t planned_uses);

  // Waits until less than `bytes` are queued, and less than `uses` are planned beyond those that are over;
  // false when closed or when `timeout` has passed.
  bool wait_for_demand(uint64_t bytes, uint64_t uses, std::chrono::milliseconds timeout);

  // The next range to fetch, when the budget allows it; nothing when closed, or after `timeout`.
  std::optional<FetchJob> next(std::chrono::milliseconds timeout);

  // The bytes of a range. It is an error of that range if they have another length than requested, or if
  // there is no memory for them.
  void deliver(uint64_t id, std::span<const uint8_t> bytes, std::shared_ptr<const void> held);

  // The range cannot be fetched; no error means lack of memory. The pieces of a longer range are then
  // requested one by one.
  void fail(uint64_t id, std::optional<Error> error);

  TakenBytes take(const RemoteSpan& span) override;
  TakenBytes read_now(const RemoteSpan& span) override;
  void count_reread() override;

  // Uses below this number are over, whether they took their bytes or not.
  void release_until(uint64_t use);

  // Drops everything that is expected, and counts uses from 0 again; waiting threads get kClosed.
  void forget();

  // The same for good.
  void close();
  bool closed() const;

  RangeCounts counts() const;

 private:
  // Outlives this object as long as its bytes are referenced.
  std::shared_ptr<RangeLedger> state_;

  // Throws kClosed in a forked process, where nothing fetches and the mutex may be held forever.
  RangeLedger& ledger() const;
};

}  // namespace stoker

// One pass over records for one small thing of each: its label, its name, how many objects it has.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/examples/label.h"
#include "core/sources/record_set.h"

namespace stoker {

// Which records: a run of them, or some by their numbers, which it borrows.
class RecordNumbers {
 public:
  RecordNumbers(uint64_t first) : first_(first) {}  // NOLINT: a number is a run
  explicit RecordNumbers(std::span<const uint64_t> numbers) : first_(0), numbers_(numbers) {}

  uint64_t operator[](size_t i) const { return numbers_.empty() ? first_ + i : numbers_[i]; }

 private:
  uint64_t first_;
  std::span<const uint64_t> numbers_;
};

// Fills `out` with what the records at positions 0 .. out.size() - 1 hold, on `threads` threads. Of several
// damaged records the first is reported; errors say where. Whole records are read and their checksums
// verified.

// Remote shards are taken from `ahead`, which expects them; without it each record is read by itself.

// How many values there are under `key`, of whatever kind; 0 where it is absent.
void count_values(const RecordSet& records, std::string_view key, RecordNumbers numbers, size_t threads,
                  RemoteReader* ahead, std::span<uint32_t> out);

// The class, -1 where there is none.
void read_labels(const RecordSet& records, const LabelKeys& keys, RecordNumbers numbers, size_t threads,
                 RemoteReader* ahead, std::span<int64_t> out);

// name_digest() of the text under `key`; of its number in decimal where there is none.
void digest_names(const RecordSet& records, std::string_view key, RecordNumbers numbers, size_t threads,
                  RemoteReader* ahead, std::span<uint64_t> out);

}  // namespace stoker

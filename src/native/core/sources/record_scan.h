// One pass over all records for one small thing of each: its label, how many objects it has.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/examples/label.h"
#include "core/sources/record_set.h"

namespace stoker {

// Fills `out` with what records first .. first + out.size() - 1 hold, on `threads` threads. Of several
// damaged records the first is reported; errors say where. Whole records are read and their checksums
// verified.

// Remote shards are taken from `ahead`, which expects them; without it each record is read by itself.

// How many values there are under `key`, of whatever kind; 0 where it is absent.
void count_values(const RecordSet& records, std::string_view key, uint64_t first, size_t threads,
                  RemoteReader* ahead, std::span<uint32_t> out);

// The class, -1 where there is none.
void read_labels(const RecordSet& records, const LabelKeys& keys, uint64_t first, size_t threads,
                 RemoteReader* ahead, std::span<int64_t> out);

}  // namespace stoker

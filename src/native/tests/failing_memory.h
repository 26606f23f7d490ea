// Memory that runs out where a test wants it to. Every allocation of this program with new, and of libjpeg,
// is counted.
#pragma once

#include <cstdint>

namespace stoker::tests {

enum class Shortage { kOnce, kForGood };

// From now on allocation number `number` (from 1) of all threads fails, and with kForGood all after it, too.
void begin_shortage(uint64_t number, Shortage shortage);

// How many allocations failed.
uint64_t end_shortage();

// Allocations that were not freed yet.
int64_t live_allocations();

}  // namespace stoker::tests

#include "core/base/mapped_reads.h"

#include <sys/resource.h>

#include <algorithm>

#include "core/base/medium_faults.h"

namespace stoker {
namespace {

// How often this thread has waited for a page from a file; nothing where the system does not count that.
int64_t count_fetches() noexcept {
#if defined(RUSAGE_THREAD)
  rusage used{};
  if (::getrusage(RUSAGE_THREAD, &used) == 0) return used.ru_majflt;
#endif
  return -1;
}

}  // namespace

void MappedReads::look() noexcept {
  const int64_t fetches = count_fetches();
  if (fetches < 0 || !can_guard()) {
    mapped_ = false;
    left_ = kMostOther;
    return;
  }
  if (!mapped_) {
    mapped_ = true;
    trust_ = 1;
  } else if (fetches != fetches_) {
    mapped_ = false;
    left_ = others_;
    others_ = std::min(2 * others_, kMostOther);
    return;
  } else if (trust_ < kMostMapped) {
    trust_ *= 2;
  } else {
    others_ = std::max(others_ / 2, kLeastOther);
  }
  fetches_ = fetches;
  left_ = trust_;
}

}  // namespace stoker

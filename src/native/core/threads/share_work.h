// Work that several threads do together for the length of a call.
#pragma once

#include <cstddef>
#include <functional>

namespace stoker {

// Calls `work` on `threads` threads at once, of which this one is one; on fewer if the system starts no more.
// Returns when all calls have ended: how many there were. Throws the first error that a call threw; the
// others go on to their ends, so `work` tells them to stop if that is to be soon.
size_t share_work(size_t threads, const std::function<void()>& work);

}  // namespace stoker

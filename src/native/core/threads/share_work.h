// Work that several threads do together for the length of a call.
#pragma once

#include <cstddef>
#include <functional>

namespace stoker {

// Calls `work` on `threads` threads at once, including this one; on fewer if the system starts no more.
// Returns the number of calls when all have ended. Throws the first error of a call. The other calls run to
// their ends, so `work` must tell them to stop if they should end early.
size_t share_work(size_t threads, const std::function<void()>& work);

}  // namespace stoker

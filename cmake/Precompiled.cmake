# Much of the time of a compilation goes into the standard library's headers. scripts/release.sh does without, so that a header
# which a file forgets to include is noticed.
set(STOKER_PRECOMPILED <algorithm> <array> <atomic> <chrono> <condition_variable> <cstring> <functional> <memory> <mutex>
  <optional> <span> <string> <string_view> <thread> <unordered_map> <utility> <vector>)
if(NOT STOKER_CORE)
  target_precompile_headers(stoker_core PRIVATE ${STOKER_PRECOMPILED})
endif()

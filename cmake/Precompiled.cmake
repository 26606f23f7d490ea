# The core is compiled once for each sanitizer, and most of that time goes into the standard library's headers. The extension is
# built without this, so that a header which a file forgets to include is still noticed.
set(STOKER_PRECOMPILED <algorithm> <array> <atomic> <chrono> <condition_variable> <cstring> <functional> <memory> <mutex>
  <optional> <span> <string> <string_view> <thread> <unordered_map> <utility> <vector>)
if(NOT STOKER_CORE)
  target_precompile_headers(stoker_core PRIVATE ${STOKER_PRECOMPILED})
endif()

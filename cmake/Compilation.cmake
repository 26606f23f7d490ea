# What makes compiling quick: the headers of the standard library are precompiled, and the files of a folder are compiled as one.
# So no two of them give the same name to something of their own. scripts/release.sh does without both, so that a header which a
# file forgets to include is noticed.
option(STOKER_BY_FOLDER "Compile the files of a folder as one" ON)
set(STOKER_PRECOMPILED <algorithm> <array> <atomic> <chrono> <condition_variable> <cstring> <functional> <memory> <mutex>
  <optional> <span> <string> <string_view> <thread> <unordered_map> <utility> <vector>)

# Of kernels and other files with options of their own, CMake compiles each for itself.
function(stoker_compile_by_folder target)  # further headers to precompile follow
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source NORMALIZE OUTPUT_VARIABLE path)
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/src/native" OUTPUT_VARIABLE path)
    cmake_path(GET path PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "${folder}" group)
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${group}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${STOKER_BY_FOLDER} UNITY_BUILD_MODE GROUP)
  target_precompile_headers(${target} PRIVATE ${ARGN} ${STOKER_PRECOMPILED})
endfunction()

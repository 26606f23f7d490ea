# libwebp and its demuxer, shared or static; its own CMake files are not where a distribution builds it with autotools.
#   WebP_FOUND, WebP::WebP
find_path(WebP_INCLUDE_DIR webp/demux.h)
find_library(WebP_LIBRARY webp)
find_library(WebP_DEMUX_LIBRARY webpdemux)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(WebP REQUIRED_VARS WebP_DEMUX_LIBRARY WebP_LIBRARY WebP_INCLUDE_DIR)
if(WebP_FOUND AND NOT TARGET WebP::WebP)
  add_library(WebP::WebP INTERFACE IMPORTED)
  target_include_directories(WebP::WebP INTERFACE "${WebP_INCLUDE_DIR}")
  target_link_libraries(WebP::WebP INTERFACE "${WebP_DEMUX_LIBRARY}" "${WebP_LIBRARY}")
endif()
mark_as_advanced(WebP_INCLUDE_DIR WebP_LIBRARY WebP_DEMUX_LIBRARY)

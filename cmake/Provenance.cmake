# Into the wheel's metadata: the licences of what is compiled into the extension, and a CycloneDX list of it (PEP 770).
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
set(STOKER_PROVENANCE "${CMAKE_CURRENT_BINARY_DIR}/provenance")
list(GET JPEG_LIBRARIES 0 STOKER_JPEG_LIBRARY)
set(STOKER_LIBRARIES "libjpeg-turbo=${STOKER_JPEG_LIBRARY}")
if(PNG_FOUND)
  list(GET PNG_LIBRARIES 0 STOKER_PNG_LIBRARY)
  list(GET ZLIB_LIBRARIES 0 STOKER_ZLIB_LIBRARY)
  list(APPEND STOKER_LIBRARIES "libpng=${STOKER_PNG_LIBRARY}" "zlib-ng=${STOKER_ZLIB_LIBRARY}")
endif()
if(WebP_FOUND)
  list(APPEND STOKER_LIBRARIES "libwebp=${WebP_LIBRARY}")
endif()
execute_process(
  COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/provenance.py" "${STOKER_PROVENANCE}"
          --version "${SKBUILD_PROJECT_VERSION_FULL}" --nanobind "${NB_DIR}"
          --libraries ${STOKER_LIBRARIES}
  COMMAND_ERROR_IS_FATAL ANY)
install(DIRECTORY "${STOKER_PROVENANCE}/" DESTINATION "${SKBUILD_METADATA_DIR}")

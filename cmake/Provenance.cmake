# Into the wheel's metadata: the licences of what is compiled into the extension, and a CycloneDX list of it (PEP 770).
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
set(STOKER_PROVENANCE "${CMAKE_CURRENT_BINARY_DIR}/provenance")
list(GET JPEG_INCLUDE_DIRS 0 STOKER_JPEG_INCLUDE)
list(GET JPEG_LIBRARIES 0 STOKER_JPEG_LIBRARY)
execute_process(
  COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/provenance.py" "${STOKER_PROVENANCE}"
          --version "${SKBUILD_PROJECT_VERSION_FULL}" --nanobind "${NB_DIR}"
          --jpeg-library "${STOKER_JPEG_LIBRARY}" --jpeg-include "${STOKER_JPEG_INCLUDE}"
  COMMAND_ERROR_IS_FATAL ANY)
install(DIRECTORY "${STOKER_PROVENANCE}/" DESTINATION "${SKBUILD_METADATA_DIR}")

# A toolchain file: the core for Linux on ARM64, by Debian's cross compiler, against the packages unpacked in STOKER_ARM64_ROOT.
# scripts/arm64_root.sh makes that folder; what is built runs there under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES STOKER_ARM64_ROOT)
set(CMAKE_FIND_ROOT_PATH "${STOKER_ARM64_ROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
foreach(language C CXX)  # of libjpeg-turbo and Python
  set(CMAKE_${language}_FLAGS_INIT 
    "-isystem ${STOKER_ARM64_ROOT}/usr/include/aarch64-linux-gnu -isystem ${STOKER_ARM64_ROOT}/usr/include")
endforeach()
foreach(folder usr/lib lib)  # zlib, which libpng wants, lies in the second
  string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -Wl,-rpath-link,${STOKER_ARM64_ROOT}/${folder}/aarch64-linux-gnu")
endforeach()

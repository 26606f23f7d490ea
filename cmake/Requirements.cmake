# What a build needs and pip cannot install, or a message that says what to install.
set(STOKER_HELP "\nA build of Stoker needs a C++20 compiler, libjpeg-turbo (2.0.6 or newer) and the headers of Python,\n"
    "for PNG and WebP at full speed also libpng (1.6.37 or newer) and libwebp:\n"
    "  Debian, Ubuntu:  apt install g++ libjpeg-dev libpng-dev libwebp-dev python3-dev\n"
    "  Fedora, RHEL:    dnf install gcc-c++ libjpeg-turbo-devel libpng-devel libwebp-devel python3-devel\n"
    "  macOS:           xcode-select --install && brew install jpeg-turbo libpng webp\n"
    "                   export CMAKE_PREFIX_PATH=$(brew --prefix)\n"
    "A wheel needs none of them: pip install --only-binary stoker stoker\n")

include(CheckLanguage)
foreach(language C CXX)
  check_language(${language})
  if(NOT CMAKE_${language}_COMPILER)
    message(FATAL_ERROR "There is no compiler for ${language}." ${STOKER_HELP})
  endif()
  enable_language(${language})
endforeach()

if(NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
  message(FATAL_ERROR "Stoker needs a 64-bit system: sizes of files and of memory are of one type in its core.")
endif()
if(CMAKE_CXX_BYTE_ORDER STREQUAL "BIG_ENDIAN")
  message(FATAL_ERROR "Stoker needs a little-endian system: it takes numbers from files as they lie in memory.")
endif()

# With the region calls that plain libjpeg lacks.
find_package(JPEG QUIET)
if(NOT JPEG_FOUND)
  message(FATAL_ERROR "libjpeg-turbo was not found." ${STOKER_HELP})
endif()
include(CheckSymbolExists)
set(CMAKE_REQUIRED_LIBRARIES JPEG::JPEG)
check_symbol_exists(jpeg_crop_scanline "stdio.h;jpeglib.h" STOKER_HAVE_CROP_SCANLINE)
unset(CMAKE_REQUIRED_LIBRARIES)
if(NOT STOKER_HAVE_CROP_SCANLINE)
  message(FATAL_ERROR "${JPEG_LIBRARIES} has no jpeg_crop_scanline: it is not libjpeg-turbo." ${STOKER_HELP})
endif()
# 2.0.6 is the oldest with which all tests of regions were seen to pass. Before 2.0.0, skipping rows of a progressive image
# could loop for ever; before 1.5.3, cropped greyscale images of odd sampling factors were wrong.
include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_INCLUDES ${JPEG_INCLUDE_DIRS})
check_c_source_compiles("
#include <stdio.h>
#include <jpeglib.h>
#if LIBJPEG_TURBO_VERSION_NUMBER < 2000006
#error older
#endif
int main(void) { return 0; }" STOKER_JPEG_IS_KNOWN)
unset(CMAKE_REQUIRED_INCLUDES)
if(NOT STOKER_JPEG_IS_KNOWN)
  message(FATAL_ERROR "The libjpeg-turbo in ${JPEG_INCLUDE_DIRS} is older than 2.0.6." ${STOKER_HELP})
endif()

# Without these the core decodes no PNG or no WebP; the package leaves them to Pillow, and warns when it first does so.
list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")
find_package(PNG 1.6.37 QUIET)
find_package(WebP QUIET)
foreach(format PNG WebP)
  if(NOT ${format}_FOUND)
    string(TOLOWER "lib${format}" library)
    message(WARNING "${library} was not found, so ${format} images are left to Pillow, which is slower.")
  endif()
endforeach()
if(NOT PNG_FOUND OR NOT WebP_FOUND)
  message(NOTICE ${STOKER_HELP})
endif()

if(STOKER_PYTHON)
  # What the stable interface needs is looked for only where wheel.py-api in pyproject.toml asks for it.
  find_package(Python 3.11 QUIET COMPONENTS Interpreter Development.Module ${SKBUILD_SABI_COMPONENT})
  if(NOT Python_FOUND)
    message(FATAL_ERROR "The headers of Python 3.11 or newer were not found." ${STOKER_HELP})
  endif()
endif()

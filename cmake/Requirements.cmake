# What a build needs and pip cannot install, or a message that says what to install.
set(STOKER_HELP "\nA build of Stoker needs a C++20 compiler, libjpeg-turbo (1.5 or newer) and the headers of Python:\n"
    "  Debian, Ubuntu:  apt install g++ libjpeg-dev python3-dev\n"
    "  Fedora, RHEL:    dnf install gcc-c++ libjpeg-turbo-devel python3-devel\n"
    "  macOS:           xcode-select --install; brew install jpeg-turbo\n"
    "                   export CMAKE_PREFIX_PATH=$(brew --prefix jpeg-turbo)\n"
    "A wheel needs none of them: pip install --only-binary stoker stoker\n")

include(CheckLanguage)
foreach(language C CXX)
  check_language(${language})
  if(NOT CMAKE_${language}_COMPILER)
    message(FATAL_ERROR "There is no compiler for ${language}." ${STOKER_HELP})
  endif()
  enable_language(${language})
endforeach()

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

if(STOKER_PYTHON)
  # What the stable interface needs is looked for only where wheel.py-api in pyproject.toml asks for it.
  find_package(Python 3.11 QUIET COMPONENTS Interpreter Development.Module ${SKBUILD_SABI_COMPONENT})
  if(NOT Python_FOUND)
    message(FATAL_ERROR "The headers of Python 3.11 or newer were not found." ${STOKER_HELP})
  endif()
endif()

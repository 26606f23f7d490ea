# libjpeg-turbo, with the region calls that plain libjpeg lacks, or a message that says what to install.
find_package(JPEG QUIET)
set(STOKER_JPEG_HELP
    "Stoker decodes JPEG with libjpeg-turbo (1.5 or newer) and needs its headers:\n"
    "  Debian, Ubuntu:  apt install libjpeg-dev\n"
    "  Fedora, RHEL:    dnf install libjpeg-turbo-devel\n"
    "  macOS:           brew install jpeg-turbo && export CMAKE_PREFIX_PATH=$(brew --prefix jpeg-turbo)\n")
if(NOT JPEG_FOUND)
  message(FATAL_ERROR "libjpeg-turbo was not found. " ${STOKER_JPEG_HELP})
endif()
include(CheckSymbolExists)
set(CMAKE_REQUIRED_LIBRARIES JPEG::JPEG)
check_symbol_exists(jpeg_crop_scanline "stdio.h;jpeglib.h" STOKER_HAVE_CROP_SCANLINE)
unset(CMAKE_REQUIRED_LIBRARIES)
if(NOT STOKER_HAVE_CROP_SCANLINE)
  message(FATAL_ERROR "${JPEG_LIBRARIES} has no jpeg_crop_scanline: it is not libjpeg-turbo. " ${STOKER_JPEG_HELP})
endif()

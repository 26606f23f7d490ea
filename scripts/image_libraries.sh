#!/usr/bin/env bash
# Builds the libraries that wheels carry, static ones that may go into an extension, with their licences: libjpeg-turbo,
# zlib-ng, libpng and libwebp.
#
#   scripts/image_libraries.sh PREFIX
#
# Does nothing for a library of which PREFIX holds this version. Sources are checked against their SHA-256;
# LIBJPEG_TURBO_SOURCE, LIBPNG_SOURCE, LIBWEBP_SOURCE and ZLIB_NG_SOURCE name files or URLs with the same bytes (distributions
# keep them). CFLAGS and CMAKE_ARGS go to CMake. docs/contributing/releasing.md says how to change a version.
set -euo pipefail

prefix=${1:?usage: scripts/image_libraries.sh PREFIX}
mkdir -p "$prefix"
prefix=$(cd "$prefix" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
read -ra more <<<"${CMAKE_ARGS:-}"

sum() { if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1; }

fetch() { # fetch NAME VERSION SOURCE: to $scratch/source.tar.gz
  if [ -f "$3" ]; then
    cp "$3" "$scratch/source.tar.gz"
  elif [[ $3 == pip:* ]]; then # a source package that pip finds where it finds all others
    "${PYTHON:-python3}" -m pip download --quiet --no-deps --no-binary :all: --dest "$scratch/sdist" "${3#pip:}" &&
      mv "$scratch"/sdist/*.tar.gz "$scratch/source.tar.gz"
  else
    curl -fsSL --retry 3 --connect-timeout 20 --max-time 300 -o "$scratch/source.tar.gz" "$3"
  fi || {
    local variable
    variable=$(echo "${1}_SOURCE" | tr 'a-z-' 'A-Z_')
    echo "$1 $2 could not be fetched; name a file or a URL with the same bytes in $variable" >&2
    exit 1
  }
}

build() { # build NAME VERSION SHA256 SOURCE FOLDER "LICENCES" OPTIONS...: FOLDER is that of CMakeLists.txt in the source
  local name=$1 version=$2 sha256=$3 source=$4 folder=$5 licences=$6 stamp
  shift 6
  stamp="$version $sha256 ${CFLAGS:-} ${CMAKE_ARGS:-} $*"
  if [ "$(cat "$prefix/.$name" 2>/dev/null)" = "$stamp" ]; then return; fi
  rm -rf "$scratch"/*
  fetch "$name" "$version" "$source"
  if [ "$(sum "$scratch/source.tar.gz")" != "$sha256" ]; then
    echo "$source has the SHA-256 $(sum "$scratch/source.tar.gz"), and $name $version has $sha256: it is another file" >&2
    exit 1
  fi
  mkdir "$scratch/source"
  tar -xzf "$scratch/source.tar.gz" -C "$scratch/source" --strip-components=1
  # Hidden symbols: nothing of it can meet another copy in the same process.
  cmake -S "$scratch/source/$folder" -B "$scratch/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" \
    -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_C_VISIBILITY_PRESET=hidden -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_FLAGS="${CFLAGS:-} -ffile-prefix-map=$scratch=." "$@" ${more[@]+"${more[@]}"} >"$scratch/log" 2>&1 &&
    cmake --build "$scratch/build" --parallel "${JOBS:-2}" --target install >>"$scratch/log" 2>&1 || {
    tail -n 30 "$scratch/log" >&2
    echo "$name $version could not be built (on x86, libjpeg-turbo needs nasm)" >&2
    exit 1
  }
  mkdir -p "$prefix/share/licenses/$name"
  for file in $licences; do cp "$scratch/source/$folder/$file" "$prefix/share/licenses/$name/"; done
  echo "$stamp" >"$prefix/.$name"
}

# Without SIMD it would be several times slower without a visible reason, so its absence (of nasm on x86) is an error.
version=3.1.3
build libjpeg-turbo $version 3a13a5ba767dc8264bc40b185e41368a80d5d5f945944d1dbaa4b2fb0099f4e5 \
  "${LIBJPEG_TURBO_SOURCE:-https://github.com/libjpeg-turbo/libjpeg-turbo/archive/refs/tags/$version.tar.gz}" . "LICENSE.md README.ijg" \
  -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DWITH_TOOLS=OFF -DWITH_TESTS=OFF -DREQUIRE_SIMD=ON
# Under the names of zlib, for libpng. The source is that in the package zlib-ng of Python.
version=2.3.3
build zlib-ng $version 08a3a8468d4f130e3dc80d28ec42fcc7a878a57dfed616233e791066327d78a3 \
  "${ZLIB_NG_SOURCE:-pip:zlib-ng==1.1.0}" src/zlib_ng/zlib-ng LICENSE.md \
  -DZLIB_COMPAT=ON -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF -DZLIB_ENABLE_TESTS=OFF -DWITH_GTEST=OFF
version=1.6.58
build libpng $version a9d4df463d36a6e5f9c29bd6f4967312d17e996c1854f3511f833924eb1993cf \
  "${LIBPNG_SOURCE:-https://github.com/pnggroup/libpng/archive/refs/tags/v$version.tar.gz}" . LICENSE \
  -DPNG_SHARED=OFF -DPNG_TESTS=OFF -DPNG_TOOLS=OFF -DPNG_FRAMEWORK=OFF -DPNG_HARDWARE_OPTIMIZATIONS=ON -DZLIB_ROOT="$prefix"
version=1.6.0
build libwebp $version e4ab7009bf0629fd11982d4c2aa83964cf244cffba7347ecd39019a9e38c4564 \
  "${LIBWEBP_SOURCE:-https://storage.googleapis.com/downloads.webmproject.org/releases/webp/libwebp-$version.tar.gz}" . "COPYING PATENTS" \
  -DBUILD_SHARED_LIBS=OFF -DWEBP_BUILD_ANIM_UTILS=OFF -DWEBP_BUILD_CWEBP=OFF -DWEBP_BUILD_DWEBP=OFF -DWEBP_BUILD_GIF2WEBP=OFF \
  -DWEBP_BUILD_IMG2WEBP=OFF -DWEBP_BUILD_VWEBP=OFF -DWEBP_BUILD_WEBPINFO=OFF -DWEBP_BUILD_WEBPMUX=OFF -DWEBP_BUILD_EXTRAS=OFF

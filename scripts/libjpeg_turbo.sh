#!/usr/bin/env bash
# Builds the libjpeg-turbo that wheels carry: a static library that may go into an extension, with its licences.
#
#   scripts/libjpeg_turbo.sh PREFIX
#
# Does nothing if PREFIX holds this version. The source is checked against its SHA-256; LIBJPEG_TURBO_SOURCE names a file or
# a URL with the same bytes (distributions keep them). CFLAGS and CMAKE_ARGS go to CMake. docs/contributing/releasing.md says how to
# change the version.
set -euo pipefail

version=3.1.3
sha256=3a13a5ba767dc8264bc40b185e41368a80d5d5f945944d1dbaa4b2fb0099f4e5
source=${LIBJPEG_TURBO_SOURCE:-https://github.com/libjpeg-turbo/libjpeg-turbo/archive/refs/tags/$version.tar.gz}

prefix=${1:?usage: scripts/libjpeg_turbo.sh PREFIX}
stamp="$version $sha256 ${CFLAGS:-} ${CMAKE_ARGS:-}"
if [ "$(cat "$prefix/.built" 2>/dev/null)" = "$stamp" ]; then exit 0; fi
mkdir -p "$prefix"
prefix=$(cd "$prefix" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

sum() { if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1; }

archive=$source
if [ ! -f "$archive" ]; then
  archive=$scratch/source.tar.gz
  curl -fsSL --retry 3 --connect-timeout 20 --max-time 300 -o "$archive" "$source" || {
    echo "libjpeg-turbo $version could not be fetched; name a file or a URL with the same bytes in LIBJPEG_TURBO_SOURCE" >&2
    exit 1
  }
fi
if [ "$(sum "$archive")" != "$sha256" ]; then
  echo "$archive has the SHA-256 $(sum "$archive"), and libjpeg-turbo $version has $sha256: it is another file" >&2
  exit 1
fi

mkdir "$scratch/source"
tar -xzf "$archive" -C "$scratch/source" --strip-components=1
# Without SIMD it would be several times slower without a visible reason, so its absence (of nasm on x86) is an error.
# Hidden symbols: nothing of it can meet another libjpeg in the same process.
read -ra more <<<"${CMAKE_ARGS:-}"
cmake -S "$scratch/source" -B "$scratch/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" \
  -DCMAKE_INSTALL_LIBDIR=lib -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DWITH_TOOLS=OFF -DWITH_TESTS=OFF -DREQUIRE_SIMD=ON \
  -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_C_VISIBILITY_PRESET=hidden \
  -DCMAKE_C_FLAGS="${CFLAGS:-} -ffile-prefix-map=$scratch=." ${more[@]+"${more[@]}"} >"$scratch/log" 2>&1 &&
  cmake --build "$scratch/build" --parallel "${JOBS:-2}" --target install >>"$scratch/log" 2>&1 || {
  tail -n 30 "$scratch/log" >&2
  echo "libjpeg-turbo $version could not be built (x86 needs nasm)" >&2
  exit 1
}
echo "$stamp" >"$prefix/.built"

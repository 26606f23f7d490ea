#!/usr/bin/env bash
# Checks for what pip cannot install, and installs it where it may do so without asking.
#
#   scripts/deps.sh build     a C++20 compiler, the headers of libjpeg-turbo, libpng, libwebp and Python, and venv
#   scripts/deps.sh test      those, and doctest
#   scripts/deps.sh test-all  those, the compiler's sanitizers, and Java for Spark and HDFS
#   scripts/deps.sh fuzz      those of `build`, clang 14 with libFuzzer, and protobuf, which one target compares with
#   scripts/deps.sh arm64     those of `build`, a compiler for ARM64, qemu-user to run what it makes, and mmdebstrap
#
# With apt-get, and root or a sudo that asks for no password, what is missing is installed; otherwise it is named.
set -euo pipefail

purpose=${1:?usage: scripts/deps.sh build|test|test-all|fuzz|arm64}
python=${PYTHON:-python3}
cxx=${CXX:-c++}
cc=${CC:-cc}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# One list for each system, in step: what to ask for when a check fails.
missing=() debian=() fedora=() macos=()

need() { # need WHAT DEBIAN FEDORA MACOS CHECK...
  local what=$1 on_debian=$2 on_fedora=$3 on_macos=$4
  shift 4
  if ! "$@" >/dev/null 2>&1; then
    missing+=("$what") debian+=("$on_debian") fedora+=("$on_fedora") macos+=("$on_macos")
  fi
}

compiles() { # compiles COMPILER FLAGS... < program
  local compiler=$1
  shift
  cat >"$scratch/try.cpp"
  "$compiler" "$@" "$scratch/try.cpp" -o "$scratch/try"
}

has_cxx20() { compiles "$cxx" -std=c++20 <<<$'#include <span>\nint main() { return static_cast<int>(std::span<int>{}.size()); }'; }

has_cc() { echo 'int main(void) { return 0; }' >"$scratch/try.c" && "$cc" "$scratch/try.c" -o "$scratch/try"; }

# Where CMake would look too: the compiler's own paths, CMAKE_PREFIX_PATH, and Homebrew's.
has_jpeg() {
  local flags=() prefix
  IFS=: read -ra prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  if command -v brew >/dev/null; then prefixes+=("$(brew --prefix jpeg-turbo)"); fi
  for prefix in ${prefixes[@]+"${prefixes[@]}"}; do flags+=("-I$prefix/include"); done
  compiles "$cxx" -fsyntax-only ${flags[@]+"${flags[@]}"} <<<$'#include <cstdio>\n#include <jpeglib.h>\nint main() { return jpeg_crop_scanline == nullptr; }'
}

has_header() { # has_header NAME: below CMAKE_PREFIX_PATH, Homebrew's prefix or the compiler's own paths
  local flags=() prefix
  IFS=: read -ra prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  if command -v brew >/dev/null; then prefixes+=("$(brew --prefix)"); fi
  for prefix in ${prefixes[@]+"${prefixes[@]}"}; do flags+=("-I$prefix/include"); done
  compiles "$cxx" -fsyntax-only ${flags[@]+"${flags[@]}"} <<<"#include <$1>"$'\nint main() {}'
}

has_doctest() {
  local flags=()
  if command -v brew >/dev/null; then flags=("-I$(brew --prefix)/include"); fi
  compiles "$cxx" -fsyntax-only ${flags[@]+"${flags[@]}"} <<<$'#include <doctest/doctest.h>\nint main() {}'
}

has_sanitizers() {
  compiles "$cxx" -fsanitize=address,undefined <<<'int main() {}' && compiles "$cxx" -fsanitize=thread <<<'int main() {}'
}

has_fuzzer() {
  compiles clang++-14 -fsanitize=fuzzer,address,undefined <<<$'#include <cstddef>\n#include <cstdint>\nextern "C" int LLVMFuzzerTestOneInput(const uint8_t*, size_t) { return 0; }'
}

has_protobuf() {
  command -v protoc >/dev/null && compiles "$cxx" -fsyntax-only <<<$'#include <google/protobuf/message.h>\nint main() {}'
}

# Spark 4 wants 17 or newer; the HDFS server does not run on 23 or newer.
has_java() {
  local version
  version=$("${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p')
  [ "${version:-0}" -ge 17 ] && [ "$version" -lt 23 ]
}

has_venv() { "$python" -c 'import venv, ensurepip'; }
has_python_headers() {
  "$python" -c 'import pathlib, sys, sysconfig; sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").is_file())'
}

check() {
  missing=() debian=() fedora=() macos=()
  need "a C compiler" gcc gcc "" has_cc
  need "a C++20 compiler" g++ gcc-c++ "" has_cxx20
  need "the headers of libjpeg-turbo" libjpeg-dev libjpeg-turbo-devel jpeg-turbo has_jpeg
  need "the headers of libpng" libpng-dev libpng-devel libpng has_header png.h
  need "the headers of libwebp" libwebp-dev libwebp-devel webp has_header webp/demux.h
  need "Python's venv and ensurepip" python3-venv python3 python@3.11 has_venv
  need "the headers of Python" python3-dev python3-devel python@3.11 has_python_headers
  case $purpose in
    build) ;;
    test) need "the header of doctest" doctest-dev doctest-devel doctest has_doctest ;;
    test-all)
      need "the header of doctest" doctest-dev doctest-devel doctest has_doctest
      need "the compiler's sanitizers" g++ "libasan libubsan libtsan" "" has_sanitizers
      need "Java 17 to 22" openjdk-17-jre-headless java-21-openjdk-headless openjdk@17 has_java
      ;;
    fuzz)
      need "clang 14 with libFuzzer" "clang-14 libclang-rt-14-dev" "clang14 compiler-rt14" llvm@14 has_fuzzer
      need "protobuf for C++" "libprotobuf-dev protobuf-compiler" "protobuf-devel protobuf-compiler" protobuf has_protobuf
      ;;
    arm64)
      need "a C++ compiler for ARM64" g++-aarch64-linux-gnu gcc-c++-aarch64-linux-gnu "" command -v aarch64-linux-gnu-g++
      need "qemu-user for ARM64" qemu-user-static qemu-user-static-aarch64 "" command -v qemu-aarch64-static
      need "mmdebstrap" mmdebstrap mmdebstrap "" command -v mmdebstrap
      ;;
    *)
      echo "scripts/deps.sh: unknown purpose '$purpose'; it is build, test, test-all, fuzz or arm64" >&2
      exit 2
      ;;
  esac
}

names() { printf '%s\n' $* | awk '!seen[$0]++' | paste -sd ' ' -; } # each word once

install_with_apt() {
  local sudo=()
  command -v apt-get >/dev/null || return 1
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || return 1
    sudo=(sudo -n)
  fi
  local packages
  read -ra packages <<<"$(names "${debian[@]}")"
  echo "Installing with apt-get: ${packages[*]}"
  {
    ${sudo[@]+"${sudo[@]}"} apt-get update &&
      ${sudo[@]+"${sudo[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}"
  } </dev/null >"$scratch/apt.log" 2>&1 || {
    tail -n 20 "$scratch/apt.log" >&2
    return 1
  }
}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "Stoker needs Python 3.11 or newer, and '$python' is not; name another with PYTHON=..." >&2
  exit 1
fi
check
if [ ${#missing[@]} -gt 0 ] && install_with_apt; then check; fi
if [ ${#missing[@]} -gt 0 ]; then
  {
    echo "Missing for $purpose:"
    printf '  - %s\n' "${missing[@]}"
    echo "Install, then run make again:"
    echo "  Debian, Ubuntu:  apt install $(names "${debian[@]}")"
    echo "  Fedora, RHEL:    dnf install $(names "${fedora[@]}")"
    echo "  macOS:           xcode-select --install; brew install $(names "${macos[@]}")"
  } >&2
  exit 1
fi

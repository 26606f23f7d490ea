#!/usr/bin/env bash
# Builds and runs the C++ tests of the core, without Python.
#
#   scripts/native_tests.sh plain|asan|tsan|arm64 BUILD_DIRECTORY
#
# plain: as released. asan: AddressSanitizer and UBSan, by clang 14. tsan: ThreadSanitizer, for the tests in which threads run.
# arm64: as released, by a cross compiler, run under qemu-user; packages for ARM64 are unpacked in BUILD_DIRECTORY-root.
# TESTED_CORE names a libstoker_core.a that is tested if no source is newer, and otherwise compiled: for `plain` that of the
# wheel, for `asan` that of scripts/fuzz.sh.
set -euo pipefail

kind=${1:?usage: scripts/native_tests.sh plain|asan|tsan|arm64 BUILD_DIRECTORY}
directory=${2:?usage: scripts/native_tests.sh plain|asan|tsan|arm64 BUILD_DIRECTORY}
jobs=${JOBS:-2}
options=(-DSTOKER_PYTHON=OFF -DSTOKER_TESTS=ON -DSTOKER_WERROR=ON)
runner=()
words=()
lower_levels=portable
if [ "$(uname -m)" = x86_64 ]; then lower_levels="portable sse42"; fi
if grep -qs avx512_vbmi /proc/cpuinfo; then lower_levels+=" avx2"; fi
with_kernels='*/audit/*,*/color/*,*/jpeg/*,*/png/*,*/resize/*,*/shards/crc32c*'
core=${TESTED_CORE:-}
if [ ! -e "$core" ] || [ -n "$(find CMakeLists.txt cmake src/native/core -newer "$core")" ]; then core=; fi
case $kind in
  plain)
    options+=(-DCMAKE_BUILD_TYPE=Release -DSTOKER_CORE="$core")
    ;;
  asan)
    options+=(-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O1 -DSTOKER_SANITIZE=address,undefined)
    options+=(-DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14 -DSTOKER_CORE="$core")
    ;;
  tsan)
    options+=(-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O1 -DSTOKER_SANITIZE=thread)
    # ThreadSanitizer of gcc 12 cannot place its memory where the kernel randomises addresses by more than 28 bits.
    if command -v setarch >/dev/null && setarch "$(uname -m)" -R true 2>/dev/null; then runner=(setarch "$(uname -m)" -R); fi
    ;;
  arm64)
    mkdir -p "$directory"
    directory=$(cd "$directory" && pwd)
    root=$directory-root
    scripts/arm64_root.sh "$root"
    options+=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/arm64.cmake" -DSTOKER_ARM64_ROOT="$root")
    runner=(qemu-aarch64-static -L "$root")
    # qemu-user holds no program to limits of its memory, and tells none.
    words=(--source-file-exclude='*/scarcity_test.cpp' --test-case-exclude='*limited address space*')
    lower_levels=portable
    with_kernels='*/resize/*,*/shards/crc32c*' # the others have no kernels for ARM64: the best are the portable ones
    ;;
  *)
    echo "scripts/native_tests.sh: unknown kind '$kind'; it is plain, asan, tsan or arm64" >&2
    exit 2
    ;;
esac
mkdir -p "$(dirname "$directory")"
echo "Building the C++ tests ($kind)"
cmake -S . -B "$directory" -G Ninja "${options[@]}" >"$directory.log" 2>&1 || { cat "$directory.log" >&2; exit 1; }
targets=(stoker_core_tests)
if [ "$kind" = plain ]; then targets+=(stoker_core_tests_without); fi
cmake --build "$directory" -j "$jobs" --target "${targets[@]}" -- --quiet
tests=$directory/src/native/tests/stoker_core_tests
${runner[@]+"${runner[@]}"} "$tests" ${words[@]+"${words[@]}"}
if [ "$kind" = plain ]; then "${tests}_without"; fi
# That was with the best kernels of this processor; now, with less, the tests of what then has other kernels than in a run
# before: cmake/Kernels.cmake lists the kernels.
if [ "$kind" = plain ] || [ "$kind" = arm64 ]; then
  for level in $lower_levels; do
    case $level in
      portable) files=$with_kernels ;;
      sse42) files='*/png/*,*/shards/crc32c*' ;;
      avx2) files='*/jpeg/*,*/resize/*' ;;
    esac
    echo "Running the tests of kernels with STOKER_KERNELS=$level"
    STOKER_KERNELS=$level ${runner[@]+"${runner[@]}"} "$tests" --source-file="$files"
  done
fi

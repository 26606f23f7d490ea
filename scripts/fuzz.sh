#!/usr/bin/env bash
# Builds every libFuzzer target under ASan and UBSan and runs each for a while.
#
#   scripts/fuzz.sh BUILD_DIRECTORY SECONDS_PER_TARGET
#
# What a target finds stays in BUILD_DIRECTORY/corpus/TARGET, so that the next run goes on from there; an input that
# breaks it is written to BUILD_DIRECTORY/TARGET-crash-...
set -euo pipefail

directory=${1:?usage: scripts/fuzz.sh BUILD_DIRECTORY SECONDS_PER_TARGET}
seconds=${2:?usage: scripts/fuzz.sh BUILD_DIRECTORY SECONDS_PER_TARGET}
cmake -S . -B "$directory" -G Ninja -DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14 \
  -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O1 -DSTOKER_SANITIZE=address,undefined \
  -DSTOKER_PYTHON=OFF -DSTOKER_FUZZ=ON >"$directory.log" 2>&1 || { cat "$directory.log" >&2; exit 1; }
cmake --build "$directory" -j "${JOBS:-2}" -- --quiet
targets=0
for source in src/native/fuzz/*.cpp; do
  name=$(basename "$source" .cpp)
  corpus=$directory/corpus/$name
  mkdir -p "$corpus"
  echo "fuzzing $name for $seconds s"
  if ! "$directory/src/native/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -verbosity=0 \
    -print_final_stats=1 -artifact_prefix="$directory/$name-" "$corpus" >"$directory/$name.log" 2>&1; then
    tail -n 60 "$directory/$name.log" >&2
    exit 1
  fi
  grep -h number_of_executed_units "$directory/$name.log"
  targets=$((targets + 1))
done
echo "$targets targets fuzzed, nothing found"

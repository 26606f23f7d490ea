#!/usr/bin/env bash
# Builds every libFuzzer target under ASan and UBSan, makes seeds, and runs each target for a while, JOBS at a time;
# then the parsers written in Python, under atheris. The first lines of a target say what it checks.
#
#   scripts/fuzz.sh BUILD_DIRECTORY SECONDS_PER_TARGET|keep [TARGET ...]
#
# Targets of Python are called py_NAME; the `python` on the PATH has Stoker and atheris. STOKER_FUZZ_CORPUS names a
# folder whose JPEGs become seeds, too. Each run begins with the inputs in scripts/fuzz_corpus, and with what earlier ones
# have left in BUILD_DIRECTORY/corpus/TARGET; an input that breaks a target is written to BUILD_DIRECTORY/TARGET-crash-...
# With `keep` nothing is fuzzed: what has been found is minimised, and replaces the archives in scripts/fuzz_corpus.
set -euo pipefail

directory=${1:?usage: scripts/fuzz.sh BUILD_DIRECTORY SECONDS_PER_TARGET|keep [TARGET ...]}
seconds=${2:?usage: scripts/fuzz.sh BUILD_DIRECTORY SECONDS_PER_TARGET|keep [TARGET ...]}
shift 2
jobs=${JOBS:-2}

targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  for source in src/native/fuzz/*/*.cpp; do targets+=("$(basename "$source" .cpp)"); done
  for source in $(grep -l '^def one_input' scripts/fuzz_python/*.py); do targets+=("py_$(basename "$source" .py)"); done
fi

cmake -S . -B "$directory" -G Ninja -DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14 \
  -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O1 -DSTOKER_SANITIZE=address,undefined \
  -DSTOKER_PYTHON=OFF -DSTOKER_FUZZ=ON -DSTOKER_WERROR=ON >"$directory.log" 2>&1 || { cat "$directory.log" >&2; exit 1; }
cmake --build "$directory" -j "$jobs" -- --quiet
python scripts/fuzz_seeds.py "$directory/corpus" ${STOKER_FUZZ_CORPUS:+"$STOKER_FUZZ_CORPUS"}
python scripts/fuzz_corpus.py unpack "$directory/corpus"

dictionary() { # dictionary TARGET
  case $1 in
    jpeg | region | jpeg_header | transcode | transform) echo src/native/fuzz/jpeg.dict ;;
    example | example_protobuf) echo src/native/fuzz/example.dict ;;
    record_set) echo src/native/fuzz/record_set.dict ;;
    py_*) echo scripts/fuzz_python/json.dict ;; # of most; tokens that a format lacks do no harm
  esac
}

fuzz() { # fuzz TARGET
  local corpora=("$directory/corpus/$1") goal=("-max_total_time=$seconds") log=$directory/$1.log command words
  mkdir -p "${corpora[0]}"
  if [ "$seconds" = keep ]; then
    corpora=("$directory/kept/$1" "${corpora[@]}") goal=(-merge=1)
    rm -rf "${corpora[0]}"
    mkdir -p "${corpora[0]}"
    find "${corpora[1]}" -name 'seed-*' -exec cp {} "${corpora[0]}" \;  # first, so that nothing is kept beside them
  fi
  words=$(dictionary "$1")
  if [[ $1 == py_* ]]; then
    command=(python scripts/fuzz_python/run.py "${1#py_}")
  else
    command=("$directory/src/native/fuzz/fuzz_$1")
  fi
  if ! "${command[@]}" "${corpora[@]}" ${words:+"-dict=$words"} "${goal[@]}" -timeout=30 -rss_limit_mb=4096 -verbosity=0 \
    -print_final_stats=1 -artifact_prefix="$directory/$1-" >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    echo "$1: FOUND; the input is $directory/$1-crash-..." >&2
    return 1
  fi
  if [ "$seconds" = keep ]; then return; fi
  echo "$1: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") executions"
}

export -f fuzz dictionary
export directory seconds
printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I{} bash -c 'set -euo pipefail; fuzz {}'
if [ "$seconds" = keep ]; then
  python scripts/fuzz_corpus.py pack "$directory/kept" "${targets[@]}"
  exit
fi
echo "${#targets[@]} targets fuzzed for $seconds s each, nothing found"

#!/usr/bin/env bash
# Builds the extension for ARM64, compares what it makes of images with this machine's, byte by byte, and runs the Python
# tests of pixels and order, all under qemu-user; some twenty times as slow as a processor.
#
#   scripts/arm64_tests.sh BUILD_DIRECTORY [WORD OF PYTEST ...]
#
# BUILD_DIRECTORY is that of `scripts/native_tests.sh arm64`, which comes first. The `python` on the PATH has Stoker, built
# with this machine's libjpeg-turbo, and pip. STOKER_ARM64_IMAGES names a folder with more JPEGs to compare.
set -euo pipefail

directory=${1:?usage: scripts/arm64_tests.sh BUILD_DIRECTORY [WORD OF PYTEST ...]}
shift
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
root=$directory-root
site=$directory-site
data=$directory-data
version=$(basename "$(readlink "$root/usr/bin/python3")")
version=${version#python}
abi=cpython-${version//./}-aarch64-linux-gnu
emulated=(qemu-aarch64-static -L "$root" "$root/usr/bin/python$version")
export PYTHONDONTWRITEBYTECODE=1

echo "Building the extension for ARM64 and Python $version"
cmake -S . -B "$directory" -G Ninja -DSTOKER_PYTHON=ON -DPython_EXECUTABLE="$(command -v python)" \
  -DPython_INCLUDE_DIR="$root/usr/include/python$version" -DSKBUILD_SOABI="$abi" >"$directory.log" 2>&1 || {
  cat "$directory.log" >&2
  exit 1
}
cmake --build "$directory" -j "${JOBS:-2}" --target _native -- --quiet

if [ ! -e "$site/.whole" ]; then
  rm -rf "$site"
  {
    python scripts/requirements.py test
    python scripts/requirements.py dev | grep -E '^(numpy|pillow|pyelftools)=='
    python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")'
  } >"$directory.txt"
  python -m pip --disable-pip-version-check install --quiet --target "$site" --only-binary :all: --python-version "$version" \
    --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux2014_aarch64 -r "$directory.txt"
  touch "$site/.whole"
fi
rm -rf "$site"/stoker "$site"/stoker-*.dist-info
cp -r src/stoker "$site/stoker"
rm -f "$site"/stoker/_native*.so
cp "$directory/_native.$abi.so" "$site/stoker/"
# Commands are found by what pip noted, which is the same for both.
cp -r "$(python -c 'import importlib.metadata as m; print(next(f for f in m.files("stoker") if f.name == "METADATA").locate().parent)')" "$site/"

if [ ! -e "$data/dataset/manifest.json" ]; then
  rm -rf "$data"
  stoker sample "$data/photos" --images 3
  stoker build "$data/photos" "$data/dataset" --quiet
fi
photos=$(find "$data/photos" ${STOKER_ARM64_IMAGES:+"$STOKER_ARM64_IMAGES"} -name '*.jp*g' -o -name '*.JPEG' | sort)
python tests/loader/kernel_hashes.py "$data/dataset/train-*.tfrecord" $photos >"$data/here.txt"
for level in portable neon; do
  STOKER_KERNELS=$level PYTHONPATH=$site "${emulated[@]}" tests/loader/kernel_hashes.py "$data/dataset/train-*.tfrecord" $photos >"$data/$level.txt"
  differences=$(diff "$data/here.txt" "$data/$level.txt" | grep -c '^>' || true)
  echo "ARM64, $level kernels: $(wc -l <"$data/$level.txt") hashes, $differences of which differ from $(uname -m)"
  if [ "$differences" != 0 ]; then diff "$data/here.txt" "$data/$level.txt" >&2; exit 1; fi
done

words=("$@")
if [ ${#words[@]} = 0 ]; then
  words=(tests/order tests/transforms tests/recipe tests/loader/test_pixels.py tests/loader/test_raw_records.py)
fi
PYTHONPATH=$site "${emulated[@]}" -m pytest -q -p no:cacheprovider "${words[@]}"

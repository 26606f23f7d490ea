#!/usr/bin/env bash
# Makes what a release consists of, and never uploads it.
#
#   scripts/release.sh sdist             dist/stoker-X.tar.gz
#   scripts/release.sh wheel             that, and the wheels that PYTHONS install, with the image libraries inside
#   scripts/release.sh release X.Y.Z     those of a fresh clone of HEAD, checked, tested, with bill of materials and sums
#
# PYTHONS="python3.11 python3.12 ..." (for a release these two, otherwise PYTHON), BUILD=build, DIST=dist. The first of several
# Pythons that install the same wheel builds it, and a release tests it with each of them. TAG=yes sets the tag; without it a
# release is a dry run. SIGNING_KEY is an SSH key that signs the sums. LIBJPEG_TURBO_SOURCE and
# the like are those of scripts/image_libraries.sh. Linux; elsewhere cibuildwheel makes the wheels.
set -euo pipefail

what=${1:?usage: scripts/release.sh sdist|wheel|release [VERSION]}
python=${PYTHON:-python3}
if [ "$what" = release ]; then pythons="python3.11 python3.12"; else pythons=$python; fi
read -ra pythons <<<"${PYTHONS:-$pythons}"
build=${BUILD:-build}
mkdir -p "$build/release"
build=$(cd "$build" && pwd)/release
dist=${DIST:-dist}
mkdir -p "$dist"
dist=$(cd "$dist" && pwd)
version=$("$python" -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["project"]["version"])')
tools=$build/tools/bin
export PATH=$tools:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1
# The same commit gives the same bytes: archives, and the date that libjpeg-turbo puts into itself, are of the commit.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1577836800)}
export SOURCE_DATE_EPOCH

say() { printf '\n== %s\n' "$*"; }
fail() {
  printf 'scripts/release.sh: %s\n' "$*" >&2
  exit 1
}

install_tools() {
  [ -x "$tools/auditwheel" ] && return
  "$python" -m venv "$build/tools"
  "$python" scripts/requirements.py release >"$build/requirements.txt"
  "$tools/python" -m pip install --quiet -r "$build/requirements.txt"
}

tags_of() { # tags_of PYTHON: Python and interface of the wheel that it installs; wheel.py-api in pyproject.toml decides
  "$1" -c '
import sys, sysconfig
own = "cp{}{}".format(*sys.version_info)
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    print(f"{own}-{own}t")
else:
    print("cp312-abi3" if sys.version_info >= (3, 12) else f"{own}-{own}")'
}

make_sdist() { # make_sdist TO
  "$tools/python" -m build --sdist --outdir "$1" . >"$build/sdist.log" 2>&1 || {
    tail -n 20 "$build/sdist.log" >&2
    fail "the source package could not be built"
  }
}

make_wheel() { # make_wheel PYTHON TO: from the source package in dist, as pip does without a wheel
  local name scratch
  name=$(tags_of "$1")
  if compgen -G "$2/stoker-$version-$name-*.whl" >/dev/null; then return; fi
  scratch=$(mktemp -d)
  tar -xzf "$dist/stoker-$version.tar.gz" -C "$scratch"
  "$1" -m venv "$scratch/venv"
  "$scratch/venv/bin/python" -m pip install --quiet "$(grep '^build==' "$build/requirements.txt")"
  (
    cd "$scratch/stoker-$version"
    # Each file for itself, without precompiled headers, so that one which it forgets to include is noticed.
    CMAKE_PREFIX_PATH=$libraries "$scratch/venv/bin/python" -m build --wheel --outdir "$scratch/made" \
      --config-setting=cmake.define.CMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
      --config-setting=cmake.define.STOKER_BY_FOLDER=OFF .
  ) >"$build/wheel-$name.log" 2>&1 || {
    tail -n 30 "$build/wheel-$name.log" >&2
    fail "the wheel for $1 could not be built"
  }
  auditwheel repair --strip --wheel-dir "$2" "$scratch"/made/stoker-*.whl >"$build/repair-$name.log" 2>&1 || {
    cat "$build/repair-$name.log" >&2
    fail "auditwheel cannot repair the wheel for $1"
  }
  if [[ $name == *-abi3 ]]; then
    abi3audit --strict --summary "$2/stoker-$version-$name"-*.whl || fail "the wheel for $1 calls what later Pythons need not have"
  fi
  rm -rf "$scratch"
}

check_ready() { # the version is this one everywhere, dated, and nothing is left to commit
  [ "$version" = "$wanted" ] || fail "pyproject.toml has version $version, not $wanted"
  grep -qE "^## \[$wanted\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md || fail "CHANGELOG.md has no line '## [$wanted] - YYYY-MM-DD'"
  if [ "${TAG:-}" = yes ] && grep -q 'stoker\.example' pyproject.toml; then fail "pyproject.toml has placeholders in [project.urls]"; fi
  [ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed: $(git status --porcelain | head -n 3)"
  if git rev-parse -q --verify "refs/tags/v$wanted" >/dev/null; then fail "the tag v$wanted is there already"; fi
}

check_contents() { # the source package is what is under version control, but for what pyproject.toml leaves out
  tar -tzf "$dist/stoker-$version.tar.gz" | sed "s|^stoker-$version/||" | grep -vE '(^|/)$|^PKG-INFO$' | LC_ALL=C sort >"$build/in-sdist"
  "$python" -c 'import tomllib
for folder in tomllib.load(open("pyproject.toml", "rb"))["tool"]["scikit-build"]["sdist"]["exclude"]:
    print(f":(exclude){folder[1:]}")' >"$build/excluded"
  mapfile -t excluded <"$build/excluded"
  git ls-files -- . "${excluded[@]}" | LC_ALL=C sort >"$build/in-git"
  diff "$build/in-git" "$build/in-sdist" || fail "the source package (>) is not what git has (<)"
  echo "$(wc -l <"$build/in-sdist") files, as under version control"
}

check_reproducible() {
  local again
  again=$(mktemp -d)
  make_sdist "$again"
  for interpreter in "${pythons[@]}"; do make_wheel "$interpreter" "$again"; done
  for file in "$again"/*; do
    cmp "$file" "$dist/$(basename "$file")" || fail "a second build of $(basename "$file") has other bytes"
    echo "$(basename "$file"): built twice, the same bytes"
  done
  rm -rf "$again"
}

environment_of() { # environment_of PYTHON: where its wheel is tested
  echo "$build/venv-$("$1" -c 'import sys, sysconfig; print(sys.version_info.major, sys.version_info.minor, sep=".", end=sys.abiflags)')"
}

test_wheel() { # test_wheel PYTHON
  local venv
  venv=$(environment_of "$1")
  rm -rf "$venv"
  "$1" -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --only-binary :all: "$(echo "$dist/stoker-$version-$(tags_of "$1")"-*.whl)[report]"
  "$1" scripts/requirements.py test >"$build/test-requirements.txt"
  "$1" scripts/requirements.py dev | grep -E '^(jsonschema|pyelftools|cyclonedx-python-lib.*)==' >>"$build/test-requirements.txt"
  "$venv/bin/python" -m pip install --quiet --only-binary :all: -r "$build/test-requirements.txt"
  "$venv/bin/python" scripts/wheel_tests.py "$venv/bin/python" -q
}

check_types() { # README's code, as a program of somebody else's that is checked against the installed wheel
  mkdir -p "$build/downstream"
  awk '/^```python$/ { inside = 1; next } /^```$/ { inside = 0 } inside' README.md >"$build/downstream/program.py"
  printf '[mypy]\n[mypy-torch.*]\nignore_missing_imports = true\n' >"$build/downstream/mypy.ini"  # it is not installed there
  (cd "$build/downstream" && mypy --strict --python-executable "$(environment_of "${pythons[0]}")/bin/python" program.py)
}

finish() {
  twine check --strict "$dist"/stoker-"$version"*
  unzip -p "$(ls "$dist"/stoker-"$version"-*.whl | head -n 1)" '*/sboms/stoker.cdx.json' >"$dist/stoker-$version.cdx.json"
  "$tools/python" scripts/statement.py "$version" "$(git rev-parse HEAD)" "$dist"/stoker-"$version"* >"$build/statement"
  mv "$build/statement" "$dist/stoker-$version.intoto.json"
  (cd "$dist" && rm -f SHA256SUMS && sha256sum stoker-"$version"* >"$build/sums" && mv "$build/sums" SHA256SUMS && cat SHA256SUMS)
  if [ -n "${SIGNING_KEY:-}" ]; then
    rm -f "$dist/SHA256SUMS.sig"
    ssh-keygen -q -Y sign -n stoker-release -f "$SIGNING_KEY" "$dist/SHA256SUMS"
  fi
}

release() {
  check_ready
  local here=$PWD source=$build/source
  rm -rf "$source"
  rm -f "$dist"/stoker-* "$dist"/SHA256SUMS*
  git clone --quiet --no-hardlinks . "$source"
  cd "$source"
  say "Source package" && make_sdist "$dist" && check_contents
  say "Wheels for ${pythons[*]}"
  for interpreter in "${pythons[@]}"; do make_wheel "$interpreter" "$dist"; done
  (cd "$dist" && ls -l stoker-*.whl)
  say "Reproducible?" && check_reproducible
  for interpreter in "${pythons[@]}"; do say "Tests of the wheel for $interpreter" && test_wheel "$interpreter"; done
  say "Types" && check_types
  say "Bill of materials, provenance, sums" && finish
  cd "$here"
  if [ "${TAG:-}" = yes ]; then
    git tag -a "v$version" -m "Stoker $version"
    say "Tagged v$version. Nothing was uploaded. To publish:"
  else
    say "A dry run: no tag was set, nothing was uploaded. With TAG=yes and then, to publish:"
  fi
  echo "git push origin v$version   # .github/workflows/release.yml makes the wheels of all systems, attests and publishes them"
}

for interpreter in "${pythons[@]}"; do
  "$interpreter" -c 'import ensurepip' 2>/dev/null || fail "'$interpreter' does not run, or has no venv; name others with PYTHONS=..."
done
install_tools
libraries=$build/libraries
case $what in
  sdist | wheel | release) ;;
  *) fail "unknown: '$what'; it is sdist, wheel or release" ;;
esac
if [ "$what" = release ]; then wanted=${2:?usage: scripts/release.sh release VERSION} && check_ready; fi
if [ "$what" != sdist ]; then
  [ "$(uname -s)" = Linux ] || fail "wheels for $(uname -s) are made by cibuildwheel; docs/contributing/releasing.md says how"
  CFLAGS="-O3 -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2" PYTHON=${pythons[0]} scripts/image_libraries.sh "$libraries"
fi
case $what in
  sdist) make_sdist "$dist" ;;
  wheel)
    make_sdist "$dist"
    rm -f "$dist/stoker-$version"-*.whl
    for interpreter in "${pythons[@]}"; do make_wheel "$interpreter" "$dist"; done
    ;;
  release) release ;;
esac

#!/usr/bin/env bash
# Installs a package of Stoker in a Debian that has Python and nothing else, and uses it there.
#
#   scripts/bare_install.sh SUITE FOLDER FILE     SUITE: bookworm (Python 3.11), trixie (3.13); FILE: a wheel or the source package
#
# The new root in FOLDER is kept for the next wheel; the source package leaves a compiler in it. That package must first fail
# and say what to install, and then be built with that. Needs root, debootstrap and the network; PIP_INDEX_URL holds there, too.
set -euo pipefail

suite=${1:?usage: scripts/bare_install.sh SUITE FOLDER FILE}
root=${2:?usage: scripts/bare_install.sh SUITE FOLDER FILE}
file=$(basename "${3:?usage: scripts/bare_install.sh SUITE FOLDER FILE}")
bundle=/etc/ssl/certs/ca-certificates.crt

fail() {
  printf 'scripts/bare_install.sh: %s\n' "$*" >&2
  exit 1
}

if [ ! -e "$root/.made" ]; then
  mkdir -p "$root"
  debootstrap --variant=minbase --include=python3,python3-venv "$suite" "$root" >"$root.log" 2>&1 || fail "no new root; see $root.log"
  touch "$root/.made"
fi
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
mkdir -p "$root/etc/ssl/certs" "$root/try"
cp -L "$bundle" "$root$bundle"
cp "$3" "$root/try/"

inside() { # inside COMMAND: in the root, with /proc and /dev of its own, which end with the command
  unshare --mount --pid --fork --kill-child bash -c 'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot "$1" \
    /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PIP_CERT="$2" \
    PIP_DISABLE_PIP_VERSION_CHECK=1 ${PIP_INDEX_URL:+PIP_INDEX_URL="$PIP_INDEX_URL"} bash -euc "$3"' - "$root" "$bundle" "cd /try; $1"
}

inside 'rm -rf venv photos dataset; python3 -m venv venv'
if [[ $file == *.whl ]]; then
  inside '! command -v cc c++ cmake && test ! -e /usr/include/jpeglib.h' || fail "$root has a compiler or libjpeg: it is not bare"
  inside "venv/bin/pip install -q --only-binary :all: ./$file"
else
  if inside "venv/bin/pip install ./$file" >"$root.log" 2>&1; then fail "the source package was built without a compiler"; fi
  needed=$(sed -nE 's/.*Debian, Ubuntu: +apt install (.*)/\1/p' "$root.log" | head -n 1)
  [ -n "$needed" ] || fail "it was not said what the source package needs; see $root.log"
  echo "Without them pip said: apt install $needed"
  inside "apt-get -q update && apt-get -q install -y --no-install-recommends $needed" >"$root.log" 2>&1 || fail "see $root.log"
  inside "venv/bin/pip install -q ./$file"
fi
inside 'venv/bin/stoker --version
  venv/bin/stoker sample photos --classes 3 --images 8 -q
  venv/bin/stoker build photos dataset -q
  venv/bin/stoker verify dataset -q
  venv/bin/python -c "
import io, numpy, stoker
from PIL import Image
from stoker import _native
with stoker.Loader(stoker.open(\"dataset\", split=\"train\"), 4, transform=stoker.RandomResizedCrop(64), shuffle=True, seed=1) as loader:
    print(sum(len(batch.labels) for batch in loader), \"images of\", _native.__file__)
image = Image.effect_mandelbrot((60, 40), (-2, -1, 1, 1), 50).convert(\"RGB\")
for kind in (\"PNG\", \"WEBP\"):
    image.save(file := io.BytesIO(), kind, lossless=True)
    assert (_native.decode_image(file.getvalue()) == numpy.asarray(image)).all()
    print(kind, \"is decoded by the core\")"'

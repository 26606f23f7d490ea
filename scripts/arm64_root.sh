#!/usr/bin/env bash
# Unpacks what the core and its extension need of Debian for ARM64 into a folder; nothing is installed on this machine.
#
#   scripts/arm64_root.sh FOLDER
#
# Does nothing if FOLDER has them all. Of the release that this machine runs, so that the cross compiler's libraries fit.
set -euo pipefail

folder=${1:?usage: scripts/arm64_root.sh FOLDER}
packages=libc6,libstdc++6,libjpeg62-turbo-dev,libpng-dev,libwebp-dev,doctest-dev,python3-minimal,libpython3-stdlib,libpython3-dev
if [ "$(cat "$folder/.whole" 2>/dev/null)" = "$packages" ]; then exit 0; fi
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
echo "Unpacking packages of Debian $release for ARM64"
mmdebstrap --quiet --variant=extract --architectures=arm64 --include="$packages" "$release" "$folder" >"$folder.log" 2>&1 || {
  tail -n 20 "$folder.log" >&2
  exit 1
}
echo "$packages" >"$folder/.whole"

#!/usr/bin/env bash
# Unpacks what the core and its extension need of Debian for ARM64 into a folder; nothing is installed on this machine.
#
#   scripts/arm64_root.sh FOLDER
#
# Does nothing if FOLDER is whole. Of the release that this machine runs, so that the cross compiler's libraries fit.
set -euo pipefail

folder=${1:?usage: scripts/arm64_root.sh FOLDER}
if [ -e "$folder/.whole" ]; then exit 0; fi
packages=libc6,libstdc++6,libjpeg62-turbo-dev,doctest-dev,python3-minimal,libpython3-stdlib,libpython3-dev
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
echo "Unpacking packages of Debian $release for ARM64"
mmdebstrap --quiet --variant=extract --architectures=arm64 --include="$packages" "$release" "$folder" >"$folder.log" 2>&1 || {
  tail -n 20 "$folder.log" >&2
  exit 1
}
touch "$folder/.whole"

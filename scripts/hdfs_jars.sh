#!/usr/bin/env bash
# Puts the jars of a real HDFS server (Hadoop 2.7.4) into a directory; does nothing if they are there.
#
#   scripts/hdfs_jars.sh DIR
#
# They come from the source package of pyspark 3.0.0 (200 MB are fetched, 25 are kept), of which no Python is used.
# PYTHON says which Python has pip.
set -euo pipefail

to=${1:?usage: scripts/hdfs_jars.sh DIR}
python=${PYTHON:-python3}
wanted=(
  hadoop-{hdfs,common,auth,annotations} htrace-core protobuf-java guava commons-{cli,codec,collections,configuration,io,lang,logging}
  jetty jetty-sslengine jetty-util javax.servlet-api jakarta.ws.rs-api jackson-{core,mapper}-asl log4j slf4j-{api,log4j12}
  netty-all xmlenc
)

is_complete() { [ "$(cat "$to/complete" 2>/dev/null)" = "${wanted[*]}" ]; }

if is_complete; then exit 0; fi
mkdir -p "$(dirname "$to")"
scratch=$(mktemp -d "$to.XXXXXX") # beside it, so that the last step is a rename
trap 'rm -rf "$scratch"' EXIT

echo "Fetching the jars of an HDFS server for the tests (200 MB)"
"$python" -m pip --disable-pip-version-check --quiet download --no-deps --no-binary :all: --dest "$scratch" pyspark==3.0.0
"$python" - "$scratch" "${wanted[@]}" <<'END'
import pathlib, re, sys, tarfile

scratch, wanted = pathlib.Path(sys.argv[1]), set(sys.argv[2:])
(scratch / "jars").mkdir()
with tarfile.open(scratch / "pyspark-3.0.0.tar.gz") as archive:
    for member in archive:
        jar = re.search(r"/deps/jars/((.+?)-\d[^/]*\.jar)$", member.name)
        if jar and jar[2] in wanted:
            (scratch / "jars" / jar[1]).write_bytes(archive.extractfile(member).read())
            wanted.remove(jar[2])
if wanted:
    sys.exit(f"scripts/hdfs_jars.sh: not in the package: {' '.join(sorted(wanted))}")
END
echo "${wanted[*]}" >"$scratch/jars/complete"
if [ -e "$to/complete" ]; then mv "$to" "$scratch/old"; fi # of another version of this script
# In one step, and never into a directory that is there; a concurrent run has put the same there.
"$python" -c 'import os, sys; os.rename(*sys.argv[1:])' "$scratch/jars" "$to" 2>/dev/null || is_complete || {
  echo "scripts/hdfs_jars.sh: cannot put the jars into $to: something else is there" >&2
  exit 1
}

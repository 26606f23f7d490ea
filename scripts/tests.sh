#!/usr/bin/env bash
# Runs all Python tests: those that talk to real servers wait a lot, so they run beside the others.
#
#   scripts/tests.sh PYTHON LOG    the output of those with servers goes to LOG, and is shown when both are done
set -uo pipefail

python=${1:?usage: scripts/tests.sh PYTHON LOG}
log=${2:?usage: scripts/tests.sh PYTHON LOG}

"$python" -m pytest -m servers >"$log" 2>&1 &
servers=$!
trap 'kill "$servers" 2>/dev/null' EXIT

"$python" -m pytest -m "not servers"
others=$?
wait "$servers"
with_servers=$?
trap - EXIT

echo
echo "Tests with real servers:"
cat "$log"
exit $((others || with_servers))

#!/usr/bin/env bash
# Runs all Python tests in two processes side by side. One has those that talk to real servers, which wait a lot, and then
# the folders BESIDE, so that both take about as long; the other has the rest.
#
#   scripts/tests.sh PYTHON LOG    the output of the first goes to LOG, and is shown when both are done
set -uo pipefail

python=${1:?usage: scripts/tests.sh PYTHON LOG}
log=${2:?usage: scripts/tests.sh PYTHON LOG}
BESIDE=(tests/house)

beside() {
  local failed=0
  trap 'kill "$!" 2>/dev/null; exit 1' TERM
  "$python" -m pytest -m servers &
  wait "$!" || failed=1
  "$python" -m pytest -m "not servers" "${BESIDE[@]}" &
  wait "$!" || failed=1
  return "$failed"
}

beside >"$log" 2>&1 &
first=$!
trap 'kill "$first" 2>/dev/null' EXIT

"$python" -m pytest -m "not servers" "${BESIDE[@]/#/--ignore=}"
others=$?
wait "$first"
beside=$?
trap - EXIT

echo
echo "Tests with real servers, and ${BESIDE[*]}:"
cat "$log"
exit $((others || beside))

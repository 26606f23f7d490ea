"""What becomes of builds into real S3, Google Cloud Storage and HDFS servers when something goes wrong.

    python -m benchmarks.faults            # everything, some minutes
    python -m benchmarks.faults s3 gs      # some stores

Each line of the table is one fault: what the command said, and what was in the store once the same command had run to
its end: whether that is byte for byte the dataset that is built on a disk, and which other objects lie there.
The servers are those of the tests (``tests/servers``); HDFS needs ``STOKER_TEST_HDFS_JARS``.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.fault_kinds import FAULTS
from benchmarks.fault_trials import BUILD, Servers, Trial
from stoker.cli.main import main as stoker

if TYPE_CHECKING:
    from collections.abc import Iterator

STORES = ("s3", "gs", "hdfs")
_ROW = "{:<36} {:<5} {:<52} {:<10} {:<6} {:>4}"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Let what Stoker prints in this process go nowhere."""
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield


def main() -> int:
    """Print the table; 1 if anything was lost, or left behind."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("stores", nargs="*", metavar="STORE", help=f"{', '.join(STORES)} (all)")
    stores = parser.parse_args().stores or list(STORES)
    failed = False
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        source, whole = Path(folder, "photos"), Path(folder, "whole")
        with quiet():
            assert stoker(["sample", str(source), "--classes", "4", "--images", "30"]) == 0
            assert stoker([*BUILD, str(source), str(whole)]) == 0
        print(_ROW.format("fault", "store", "outcome", "same bytes", "litter", "s"))
        for store in stores:
            with Servers.running(store, Path(folder)) as servers:
                for name, kinds, fault in FAULTS:
                    if store not in kinds:
                        continue
                    trial = Trial(servers, source, whole)
                    began = time.monotonic()
                    outcome = fault(trial)
                    same, litter = trial.result()
                    failed |= not same or bool(litter)
                    row = (name, store, outcome, "yes" if same else "NO", len(litter) or "none")
                    print(_ROW.format(*row, f"{time.monotonic() - began:.0f}"), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

"""Build the datasets that Stoker's readers read; those that this version of Stoker does not offer are left out."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.rivals.stoker.stored import BUILDS
from benchmarks.rivals.work import Work
from stoker.cli.main import main

_USAGE = 2


def build(words: list[str]) -> int:
    """Run ``stoker build``; return its exit code."""
    try:
        return main(["build", *words])
    except SystemExit as end:  # how argparse refuses what it does not know
        return int(end.code or 0)


def prepare(work: Work) -> None:
    """Build every dataset."""
    for name, (tree, settings) in BUILDS.items():
        code = build([str(Path(work.sources, tree)), work.path_of(name), "--shards", "8", *settings])
        if code not in (0, _USAGE):
            raise SystemExit(f"stoker build of {name} ended with {code}")


if __name__ == "__main__":
    prepare(Work.from_json(sys.argv[1]))

"""WebDataset's ShardWriter, one a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import webdataset

from benchmarks.rivals.pictures import payload
from benchmarks.rivals.serving import serve_builds
from benchmarks.rivals.writing import in_processes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.rivals.work import Work


def write_part(work: Work, out: Path, part: int, photos: Iterator[tuple[int, str]]) -> None:
    """Write the shards of one process."""
    with webdataset.ShardWriter(f"{out}/part{part}-%06d.tar", maxcount=500, verbose=0) as writer:
        for number, path in photos:
            writer.write({"__key__": f"{number:08d}", "jpg": payload(work.line, path), "cls": number})


def build(work: Work, out: Path) -> None:
    """Write all parts at once."""
    in_processes(write_part, work, out)


if __name__ == "__main__":
    serve_builds(build)

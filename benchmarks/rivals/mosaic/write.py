"""Mosaic's MDSWriter, one a process, and its merge of their indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.rivals.mosaic.imported import MDSWriter, merge_index
from benchmarks.rivals.pictures import payload
from benchmarks.rivals.serving import serve_builds
from benchmarks.rivals.writing import in_processes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.rivals.work import Work


def write_part(work: Work, out: Path, part: int, photos: Iterator[tuple[int, str]]) -> None:
    """Write the shards of one process."""
    columns = {"image": "bytes", "number": "int"}
    with MDSWriter(out=str(out / str(part)), columns=columns, size_limit=1 << 25) as writer:
        for number, path in photos:
            writer.write({"image": payload(work.line, path), "number": number})


def build(work: Work, out: Path) -> None:
    """Write all parts at once, then one index."""
    in_processes(write_part, work, out)
    merge_index(str(out), keep_local=True)


if __name__ == "__main__":
    serve_builds(build)

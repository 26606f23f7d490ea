"""ArrayRecord's writer, one a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.rivals.grain.prepare import write_shard
from benchmarks.rivals.pictures import payload
from benchmarks.rivals.serving import serve_builds
from benchmarks.rivals.writing import in_processes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.rivals.work import Work

SHARDS_A_PROCESS = 4


def write_part(work: Work, out: Path, part: int, photos: Iterator[tuple[int, str]]) -> None:
    """Write the shards of one process."""
    mine = list(photos)
    for shard in range(SHARDS_A_PROCESS):
        records = ((number, payload(work.line, path)) for number, path in mine[shard::SHARDS_A_PROCESS])
        write_shard(out / f"{part * SHARDS_A_PROCESS + shard:05d}.array_record", "group_size:1", records)


def build(work: Work, out: Path) -> None:
    """Write all parts at once."""
    in_processes(write_part, work, out)


if __name__ == "__main__":
    serve_builds(build)

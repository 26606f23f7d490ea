"""For writers that use one core each: as many processes of them as others have threads."""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.rivals.work import Work


def in_processes(
    write_part: Callable[[Work, Path, int, Iterator[tuple[int, str]]], None], work: Work, out: Path
) -> None:
    """Run ``write_part(work, out, part, (number, path)...)`` for each part in a forked process."""
    context = multiprocessing.get_context("fork")
    photos = list(enumerate(work.build_photos()))
    processes = [
        context.Process(target=write_part, args=(work, out, part, iter(photos[part :: work.threads])))
        for part in range(work.threads)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise SystemExit("a writing process failed; what it said is above")

"""What the system tells of threads, CPUs, memory and files; nothing where it does not tell, which is no error."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.config import available_cpus
from stoker.storage.page_cache import cached_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_TASKS = Path("/proc/self/task")
_STAT = Path("/proc/stat")
_MEMORY = Path("/proc/meminfo")
_MOST_FILES = 2000
_IDLE_FIELDS = (3, 4)  # idle and waiting for a disk


@dataclass(frozen=True, slots=True)
class Times:
    """CPU time so far, in seconds.

    Attributes:
        wall: The clock.
        process: Of this process.
        machine: Of all programs, on the CPUs that this process may use; None where the system does not tell.
        threads: Of each thread by its number in the system: on a CPU, and ready to run without one.
    """

    wall: float
    process: float
    machine: float | None
    threads: Mapping[int, tuple[float, float]] = field(default_factory=dict)


def read_times(wall: float, process: float) -> Times:
    """Return the times that the system tells, beside two that were taken already."""
    return Times(wall, process, _machine_seconds(), _thread_seconds())


def queued_seconds(thread: int) -> float:
    """Return how long a thread, by its number in the system, was ready to run without a CPU; 0 where nobody tells."""
    found = _scheduled(_TASKS / str(thread))
    return 0.0 if found is None else found[1]


def _thread_seconds() -> dict[int, tuple[float, float]]:
    tasks = _TASKS.iterdir() if _TASKS.is_dir() else ()
    return {int(task.name): found for task in tasks if (found := _scheduled(task)) is not None}


def _scheduled(task: Path) -> tuple[float, float] | None:
    """Return how long a thread was on a CPU, and ready to run without one; None if it has ended, or nobody counts."""
    try:
        running, queued = (task / "schedstat").read_bytes().split()[:2]
        return int(running) / 1e9, int(queued) / 1e9
    except (OSError, ValueError):
        return None


def limited_by_quota() -> bool:
    """Tell whether this process may use less time than its CPUs have: what others do on those takes nothing from it."""
    return hasattr(os, "sched_getaffinity") and available_cpus() < len(os.sched_getaffinity(0))


def _machine_seconds() -> float | None:
    try:
        rows = [line.split() for line in _STAT.read_text().splitlines() if line.startswith("cpu")]
        own = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        ticks = [[int(part) for part in row[1:9]] for row in rows if row[0] in own]
    except (OSError, ValueError):
        return None
    busy = sum(sum(row) - sum(row[at] for at in _IDLE_FIELDS) for row in ticks)
    return busy / os.sysconf("SC_CLK_TCK") if ticks else None


def free_memory() -> int | None:
    """Return how many bytes files could have in memory beside what programs use; None if unknown."""
    try:
        lines = _MEMORY.read_text().splitlines()
    except OSError:
        return None
    kib = next((int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)
    return None if kib is None else kib * 1024


def cached_share(paths: Iterable[Path]) -> float | None:
    """Return the share of files' bytes that is in the page cache; None if it cannot be said.

    Of many files, some are looked at.
    """
    names = list(paths)
    cached = total = 0
    for path in names[:: max(1, len(names) // _MOST_FILES)]:
        try:
            held, size = cached_bytes(path)
        except (OSError, ValueError):
            continue
        cached += held
        total += size
    return cached / total if total else None

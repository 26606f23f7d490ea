"""What the system says of threads, CPUs, memory and files; where it does not say, that is not an error."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.config import available_cpus
from stoker.errors import ConfigError
from stoker.inspect.diagnosis.decision import Files
from stoker.inspect.measuring import cached_bytes
from stoker.loader import parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stoker.loader import Dataset, Mix

_TASKS = Path("/proc/self/task")
_STAT = Path("/proc/stat")
_MEMORY = Path("/proc/meminfo")
_MOST_FILES = 2000
_IDLE_FIELDS = (3, 4)  # idle and waiting for a disk


@dataclass(frozen=True, slots=True)
class ThreadTime:
    """Times of a thread since it began."""

    running: float = 0.0  # seconds on a CPU
    queued: float = 0.0  # seconds in which it was ready to run and no CPU was free
    turns: int = 0  # how often it was put on a CPU

    def __sub__(self, other: ThreadTime) -> ThreadTime:
        return ThreadTime(self.running - other.running, self.queued - other.queued, self.turns - other.turns)


@dataclass(frozen=True, slots=True)
class Times:
    """CPU time so far, in seconds."""

    wall: float  # the clock
    process: float  # of this process
    machine: float | None  # of all programs, on the CPUs that this process may use; None where the system does not say
    threads: Mapping[int, ThreadTime] = field(default_factory=dict)  # of each thread, by its number in the system


def read_times() -> Times:
    """Return the times of the process, of its threads and of the machine."""
    tasks = _TASKS.iterdir() if _TASKS.is_dir() else ()
    threads = {int(task.name): thread_time for task in tasks if (thread_time := _scheduled(task)) is not None}
    return Times(time.perf_counter(), time.process_time(), _machine_seconds(), threads)


def scheduled(thread: int) -> ThreadTime:
    """Return the times of a thread, by its number in the system; zeros where the system does not say."""
    return _scheduled(_TASKS / str(thread)) or ThreadTime()


def _scheduled(task: Path) -> ThreadTime | None:
    try:
        running, queued, turns = (task / "schedstat").read_bytes().split()[:3]
        return ThreadTime(int(running) / 1e9, int(queued) / 1e9, int(turns))
    except (OSError, ValueError):  # it has ended, or this kernel does not count
        return None


def limited_by_quota() -> bool:
    """Return whether this process may use less time than its CPUs have, whatever other programs do on them."""
    return hasattr(os, "sched_getaffinity") and available_cpus() < len(os.sched_getaffinity(0))


def _machine_seconds() -> float | None:
    try:
        rows = [line.split() for line in _STAT.read_text().splitlines() if line.startswith("cpu")]
        own = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        ticks = [[int(part) for part in row[1:9]] for row in rows if row[0] in own]
    except (AttributeError, OSError, ValueError):
        return None
    busy = sum(sum(row) - sum(row[at] for at in _IDLE_FIELDS) for row in ticks)
    return busy / os.sysconf("SC_CLK_TCK") if ticks else None


def uses_accelerator() -> bool:
    """Return whether PyTorch runs on a GPU in this process: a thread that waits for one is busy on its CPU."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda is not None and bool(cuda.is_initialized())


def look_at_files(dataset: Dataset | Mix) -> Files:
    """Return where a dataset lies, with the share of it that is in the page cache now as ``cached_before``."""
    parts = parts_of(dataset)
    place = ", ".join(part.path for part in parts)
    loose = not any(part.shards for part in parts)
    pixels = all(part.schema.image_encoding == "raw" for part in parts)
    if any(part.remote is not None for part in parts):
        return Files(place=place, remote=True, loose=loose, pixels=pixels)
    return Files(
        place=place,
        size_bytes=sum(part.size_bytes for part in parts),
        memory_bytes=_available_memory(),
        cached_before=_cached_share([path for part in parts for path in files_of(part, _MOST_FILES)]),
        is_directory=len(parts) == 1 and Path(place).is_dir(),
        loose=loose,
        pixels=pixels,
    )


def files_of(dataset: Dataset, most: int | None = None) -> list[Path]:
    """Return the files that are read: of a compressed shard the inflated one, of very many images about ``most``.

    Raises:
        ConfigError: The samples lie in a store.
    """
    if dataset.remote is not None:
        raise ConfigError(f"{dataset.path} is in a store, and in no page cache of this machine; measure without --cold")
    if dataset.shards:
        return [shard.local_path if shard.inflated is None else shard.inflated.path for shard in dataset.shards]
    numbers = dataset.numbers[:: 1 if most is None else max(1, len(dataset) // most)]
    return list(dict.fromkeys(Path(dataset.records.where(int(number))[0]) for number in numbers))


def _available_memory() -> int | None:
    try:
        lines = _MEMORY.read_text().splitlines()
    except OSError:
        return None
    kib = next((int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)
    return None if kib is None else kib * 1024


def _cached_share(paths: Iterable[Path]) -> float | None:
    """Return the share of files' bytes that is in the page cache, from some of them if there are many."""
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

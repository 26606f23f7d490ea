"""What a process holds, and whether that grows: the looks that `benchmarks.soak` takes between its rounds."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

COUNTED = ("descriptors", "threads", "files")
MEASURED = ("resident_bytes", "anonymous_bytes", "heap_bytes", "python_blocks")
LIMITS = {"resident_bytes": 4 << 20, "anonymous_bytes": 4 << 20, "heap_bytes": 1 << 20, "python_blocks": 20_000}
_SETTLING_SECONDS = 5.0


class _Mallinfo2(ctypes.Structure):
    """``struct mallinfo2`` of glibc."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Look:
    """What this process held at a moment at which nothing was going on.

    Attributes:
        seconds: Since the soak began.
        descriptors: Open files, the one that lists them not counted.
        threads: Of the system's counting.
        files: In the scratch folder.
        resident_bytes: Memory of the process that lies in RAM, after the heap gave back what it could.
        anonymous_bytes: The part of it that is of no file.
        heap_bytes: What ``malloc`` has handed out, of all arenas.
        python_blocks: What the allocator of Python has handed out.
    """

    seconds: float
    descriptors: int
    threads: int
    files: int
    resident_bytes: int
    anonymous_bytes: int
    heap_bytes: int
    python_blocks: int


@dataclass(frozen=True, slots=True)
class Trend:
    """A straight line through measurements of one kind.

    Attributes:
        of: What was measured.
        an_hour: Its growth in an hour.
        least: The lower end of the interval that holds the true growth with 95 %.
        leaks: Whether the growth over the time looked at is beyond doubt and beyond `LIMITS`.
    """

    of: str
    an_hour: float
    least: float
    leaks: bool


class Looking:
    """Takes looks.

    Args:
        scratch: The folder whose files are counted.
    """

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._began = time.monotonic()
        self._threads = _listed("task")
        self._libc = ctypes.CDLL(None)
        self._libc.mallinfo2.restype = _Mallinfo2

    def look(self) -> Look:
        """Collect garbage, let threads that were asked to end do so, and look."""
        gc.collect()
        self._libc.malloc_trim(0)
        self._settle()
        heap = self._libc.mallinfo2()
        memory = _memory()
        return Look(
            seconds=time.monotonic() - self._began,
            descriptors=_listed("fd") - 1,
            threads=_listed("task"),
            files=sum(1 for _ in self._scratch.rglob("*")),
            resident_bytes=memory["Rss"],
            anonymous_bytes=memory["Anonymous"],
            heap_bytes=heap.uordblks + heap.hblkhd,
            python_blocks=sys.getallocatedblocks(),
        )

    def _settle(self) -> None:
        """The system may count a thread for a moment longer than it can be joined."""
        deadline = time.monotonic() + _SETTLING_SECONDS
        while _listed("task") > self._threads and time.monotonic() < deadline:
            time.sleep(0.005)


def _listed(folder: str) -> int:
    """Return how many entries a folder of this process has in /proc."""
    return len(os.listdir(f"/proc/self/{folder}"))  # noqa: PTH208 - a Path would make objects of all


def _memory() -> dict[str, int]:
    """Return the sums over all mappings, in bytes."""
    found = {}
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]:
        name, size = line.split(":")
        found[name] = int(size.split()[0]) << 10
    return found


def growing(looks: Sequence[Look], name: str) -> str | None:
    """Say how a count has grown since the first look, if it has."""
    first, last = getattr(looks[0], name), getattr(looks[-1], name)
    return f"{name}: {first} at first, {last} at the end" if last > first else None


def trend(looks: Sequence[Look], name: str) -> Trend:
    """Fit a line by least squares.

    The interval is that of the slope of a linear regression, with the residuals' own standard deviation.
    """
    if len(looks) < 4:  # a line takes two, and its error more
        return Trend(name, 0.0, 0.0, leaks=False)
    hours = np.array([look.seconds / 3600 for look in looks])
    values = np.array([getattr(look, name) for look in looks], np.float64)
    centred = hours - hours.mean()
    spread = float(centred @ centred)
    slope = float(centred @ values) / spread
    residuals = values - values.mean() - slope * centred
    error = math.sqrt(float(residuals @ residuals) / (len(looks) - 2) / spread)
    least = slope - 1.96 * error
    span = float(hours[-1] - hours[0])
    return Trend(name, slope, least, leaks=least * span > LIMITS[name])

"""Planning what is read ahead from stores: from samples that come next to byte ranges, window by window."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

import numpy as np

from stoker.errors import StokerError
from stoker.feed.range_plan import cut_windows, plan_ranges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from stoker import _native
    from stoker.feed.range_plan import RangeLimits
    from stoker.feed.schedule import Upcoming

    Places = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

_LONG = 3600.0


class Locate(Protocol):
    """Tells where samples lie: `_native.BatchEngine.remote_places`."""

    def __call__(self, numbers: NDArray[np.uint64], objects: NDArray[np.int32] | None = None, /) -> Places:
        """Return file, offset and length of each, int64 (B,); file -1 for what need not be fetched."""


class Planner:
    """Turns what comes next into ranges, window by window. Safe from any thread.

    Args:
        ranges: Where they are queued.
        locate: Tells where samples lie.
        limits: How pieces become ranges.
        most_ahead: The most samples that are planned beyond those that are over.
    """

    def __init__(self, ranges: _native.RemoteRanges, locate: Locate, limits: RangeLimits, most_ahead: int) -> None:
        self._ranges = ranges
        self._locate = locate
        self._limits = limits
        self._most_ahead = most_ahead
        self._lock = threading.Lock()
        self._future: Iterator[Upcoming] | None = None
        self._has_future = threading.Event()
        self._seen = self._planned = 0
        self._waiting = np.empty((5, 0), np.int64)
        """Uses that were looked at and are not planned yet: number, file, offset, length and group of each."""

    def begin(self, future: Iterator[Upcoming]) -> None:
        """Forget what was planned, and plan this from now on; uses count from 0 again."""
        with self._lock:
            self._ranges.forget()
            self._future = future
            self._has_future.set()
            self._seen = self._planned = 0
            self._waiting = np.empty((5, 0), np.int64)
            self._plan_window()

    def plan_until(self, use: int) -> None:
        """See that all uses below a number are planned, if the future has so many."""
        while self._planned < use and self._future is not None:
            with self._lock:
                if self._planned < use:
                    self._plan_window()

    def run(self) -> None:
        """Plan whenever little is queued, until the ranges are closed."""
        while not self._ranges.closed:
            self._has_future.wait()
            if self._ranges.wait_for_appetite(self._limits.window // 2 + 1, self._most_ahead, _LONG):
                with self._lock:
                    if self._future is None:
                        self._has_future.clear()
                    else:
                        self._plan_window()

    def close(self) -> None:
        """Wake `run`, when the ranges are closed."""
        self._has_future.set()

    def _plan_window(self) -> None:
        self._look_ahead()
        number, file, offset, length, group = self._waiting
        ends = cut_windows(length, group, self._limits)
        # More than a window was looked at, or as much as may be; none of it need be fetched where all is at hand.
        end = int(ends[0]) if len(ends) else 0
        plan = plan_ranges(file[:end], offset[:end], length[:end], self._limits, group[:end])
        self._planned = int(number[end]) if end < len(number) else self._seen
        self._waiting = self._waiting[:, end:]
        self._ranges.expect(
            plan.file,
            plan.offset,
            plan.length,
            np.ascontiguousarray(number[plan.last_use]),
            plan.starts,
            (plan.piece_offset, plan.piece_length, plan.piece_uses),
            self._planned,
        )

    def _look_ahead(self) -> None:
        """Look at more than a window, or at so many uses that nearly all must be here already."""
        parts, some = [self._waiting], int(self._waiting[3].sum())
        most = self._seen + self._limits.uses
        while some <= self._limits.window and self._seen < most and self._future is not None:
            batch = next(self._future, None)
            if batch is None:
                self._future = None
                break
            file, offset, length = self._places(batch)
            here = np.flatnonzero(file >= 0)
            parts.append(np.stack([here + self._seen, file[here], offset[here], length[here], batch.group[here]]))
            some += int(length[here].sum())
            self._seen += len(file)
        self._waiting = np.concatenate(parts, axis=1)

    def _places(self, batch: Upcoming) -> Places:
        try:
            return self._locate(batch.numbers, batch.objects)
        except (StokerError, OSError):  # of an index; the thread that reads its sample meets it, and can name that
            nowhere = np.full(len(batch.numbers), -1, np.int64)
            return nowhere, nowhere, nowhere

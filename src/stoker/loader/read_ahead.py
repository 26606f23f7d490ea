"""Reading ahead from stores: one thread plans, some fetch, and the core hands out the bytes.

::

    what comes next ──▶ Planner ──▶ RemoteRanges (queue, budget) ──▶ fetchers ──▶ store
                                          ▲   ▲────────────────────────┘ bytes
    decoding threads ────── take ─────────┘

Every thread is a daemon, starts when it is first needed, and ends with `Prefetcher.close` or with the loader.
"""

from __future__ import annotations

import bisect
import threading
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.config import check_range, check_size
from stoker.errors import StokerError, StorageError
from stoker.forks import process_number
from stoker.loader.range_plan import RangeLimits, plan_ranges, window_end
from stoker.loader.tracing import FetchLog
from stoker.storage import stopping_when

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from stoker.loader.selection import Numbers
    from stoker.storage import Location

    Extents = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
    Read = Callable[[int, int, int], bytes]
    Locate = Callable[[NDArray[np.uint64], NDArray[np.int32] | None], Extents]


_WAIT_SECONDS = 3600.0  # then a thread looks around and waits again
_JOIN_SECONDS = 0.5
_ANY_NUMBER = 2**62
_ALL_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """How a loader reads a dataset that lies in a bucket or in HDFS; of local files it changes nothing.

    A loader knows which samples it will need, in which order, also in the epoch to come. It asks for their bytes as far
    ahead as the budget reaches, so that the store's latency is waited for once and not once for each sample.
    `docs/how-to/buckets.md` says which numbers fit which store.

    Attributes:
        budget: The most bytes that are asked for and not used yet, such as ``"1GB"`` or a number. Half of it is what
            the loader looks at in one go to find bytes that lie side by side.
        connections: Requests at a time.
        gap: Up to so many bytes between two samples are read rather than asking twice.
        longest: The most bytes of one request, unless a single sample has more.

    Raises:
        ConfigError: A size cannot be read, or a number is out of range.
    """

    budget: str | int = "256MB"
    connections: int = 32
    gap: str | int = "64KB"
    longest: str | int = "8MB"

    def __post_init__(self) -> None:
        check_range("connections", self.connections, 1, 1024)
        self.limits()

    @property
    def budget_bytes(self) -> int:
        """The budget as a number."""
        return check_size("budget", self.budget, 1)

    def limits(self) -> RangeLimits:
        """Return how pieces become ranges: two windows fit the budget."""
        window = max(1, self.budget_bytes // 2)
        return RangeLimits(window, check_size("gap", self.gap, 0), min(window, check_size("longest", self.longest, 1)))


class NumberedFiles(ABC):
    """So many files of one dataset, by the numbers that the core has for them. Immutable, and safe from any thread.

    Attributes:
        first: Number of the first, unique in this process; the others follow.
    """

    def __init__(self, count: int) -> None:
        self.first = _native.number_remote_files(count)

    @abstractmethod
    def read(self, number: int, offset: int, length: int) -> bytes:
        """Return bytes of a file by its number in this process; the core calls this where nothing is read ahead."""

    def attach_to(self, records: _native.RecordSet | _native.FileSet) -> None:
        """Make these the files of a native reader; it then reads them through `read`."""
        records.set_remote(_native.DirectReader(self.read), self.first)


class RemoteFiles(NumberedFiles):
    """Files in stores; some may be on this machine.

    Args:
        count: How many there are.
        path_of: Gives the path of one, from 0.
    """

    def __init__(self, count: int, path_of: Callable[[int], Location]) -> None:
        super().__init__(count)
        self._path_of = path_of

    def path(self, number: int) -> Location:
        """Return the path of a file by its number in this process."""
        return self._path_of(number - self.first)

    def read(self, number: int, offset: int, length: int) -> bytes:
        """Return bytes of a file. See `NumberedFiles.read`.

        Raises:
            StorageError: An object has become shorter. What is missing of a file on this machine, the core notices.
            OSError: The file cannot be read.
        """
        path = self.path(number)
        data = path.read_range(offset, length, known_size=offset + length)
        if len(data) < length and not path.is_local:
            message = f"{path} has become shorter: it has {offset + len(data)} bytes, and {offset + length} are needed"
            raise StorageError(f"{message}; restore it, or build again", path=str(path))
        return data


@dataclass(frozen=True, slots=True)
class Upcoming:
    """Samples that come one after the other."""

    numbers: NDArray[np.uint64]  # uint64 (B,), images of the source
    objects: NDArray[np.int32] | None  # int32 (B,), which object of each; None: all whole
    # int64 (B,), which window of blocks each is in; see `stoker.loader.range_plan.window_end`
    group: NDArray[np.int64]


class Planner:
    """Turns what comes next into ranges, window by window. Safe from any thread.

    Args:
        ranges: Where they are queued.
        locate: Gives file, offset and length of samples, int64 (B,), from ``numbers`` and ``objects`` of `Upcoming`;
            file -1 for what need not be fetched. Such is `_native.BatchEngine.remote_spans`.
        limits: How pieces become ranges.
        most_ahead: The most samples that are planned beyond those that were released.
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
            if self._ranges.wait_for_demand(self._limits.window // 2 + 1, self._most_ahead, _WAIT_SECONDS):
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
        # More than a window was looked at, or as much as may be; none of it need be fetched where all is at hand.
        end = window_end(length, group, self._limits)
        plan = plan_ranges(file[:end], offset[:end], length[:end], self._limits)
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
            file, offset, length = self._extents(batch)
            here = np.flatnonzero(file >= 0)
            parts.append(np.stack([here + self._seen, file[here], offset[here], length[here], batch.group[here]]))
            some += int(length[here].sum())
            self._seen += len(file)
        self._waiting = np.concatenate(parts, axis=1)

    def _extents(self, batch: Upcoming) -> Extents:
        try:
            return self._locate(batch.numbers, batch.objects)
        except (StokerError, OSError):  # of an index; the thread that reads its sample meets it, and can name that
            nowhere = np.full(len(batch.numbers), -1, np.int64)
            return nowhere, nowhere, nowhere


class Prefetcher:
    """Fetches what comes next, on threads of its own.

    `begin`, `ensure_planned` and `release` belong to one consumer thread.

    Args:
        files: The files of all datasets that the core asks for.
        settings: How far ahead, and with how many requests.
        ranges: What hands out the bytes.
        locate, most_ahead: See `Planner`.

    Attributes:
        log: Of the requests.
    """

    def __init__(
        self,
        files: Sequence[NumberedFiles],
        settings: ReadAhead,
        ranges: _native.RemoteRanges,
        locate: Locate,
        most_ahead: int = _ANY_NUMBER,
    ) -> None:
        self._ranges = ranges
        self._connections = settings.connections
        self._stop = threading.Event()
        self._read = _stoppable_reader(files, self._stop)
        self._planner = Planner(ranges, locate, settings.limits(), most_ahead)
        self._threads: list[threading.Thread] = []
        self.log = FetchLog()
        self._process = process_number()
        self._planned = self._released = 0

    def begin(self, future: Iterator[Upcoming]) -> None:
        """Go to another future; what was fetched for the one before is freed."""
        self._start_threads()
        self._planned = self._released = 0
        self._planner.begin(future)

    def ensure_planned(self, samples: int) -> None:
        """See that so many more samples are planned, which are about to be asked for."""
        self._planned += samples
        self._planner.plan_until(self._planned)

    def release(self, samples: int) -> None:
        """Free what is left of so many more samples: whether they were loaded or not, they are not asked for again."""
        self._released += samples
        self._ranges.release_until(self._released)

    def close(self) -> None:
        """Stop. Waiting threads get an error; requests that hang are left alone. In a forked process: nothing."""
        if process_number() != self._process:
            return
        self._stop.set()
        self._ranges.close()
        self._planner.close()
        end = time.monotonic() + _JOIN_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _start_threads(self) -> None:
        if self._threads:
            return
        works: list[Callable[[], None]] = [self._planner.run]
        works += [partial(_fetch, self._ranges, self._read, self.log, i) for i in range(self._connections)]
        for work in works:
            thread = threading.Thread(target=work, name="stoker-ahead", daemon=True)
            thread.start()
            self._threads.append(thread)


def _stoppable_reader(files: Sequence[NumberedFiles], stop: threading.Event) -> Read:
    """Return what reads the files of several datasets by their numbers until ``stop`` is set, on any thread."""
    ordered = sorted(files, key=lambda each: each.first)
    firsts = [each.first for each in ordered]

    def read(number: int, offset: int, length: int) -> bytes:
        with stopping_when(stop):
            return ordered[bisect.bisect_right(firsts, number) - 1].read(number, offset, length)

    return read


def _fetch(ranges: _native.RemoteRanges, read: Read, log: FetchLog, fetcher: int) -> None:
    """Fetch on one thread. It does not hold the prefetcher, which could never be freed then."""
    while not ranges.closed:
        with suppress(MemoryError):  # which the taker of the bytes gets; this thread goes on
            job = ranges.next(_WAIT_SECONDS)
            if job is None:
                continue
            number, file, offset, length = job
            begun = time.monotonic_ns()
            try:
                ranges.deliver(number, read(file, offset, length))
            except BaseException as error:  # noqa: BLE001 - the root of a thread: the taker of the bytes gets the error
                ranges.fail(number, error)
            if log.on:
                log.add(fetcher, begun, length)


@contextmanager
def read_through(
    files: RemoteFiles | None, records: _native.RecordSet, numbers: Numbers | None = None
) -> Iterator[_native.RemoteRanges | None]:
    """Read records, or some, ahead while the body of ``with`` goes through them in order; nothing for local ones."""
    if files is None:
        yield None
        return
    settings = ReadAhead()
    ranges = _native.RemoteRanges(settings.budget_bytes)
    reading = Prefetcher([files], settings, ranges, lambda numbers, _: records.remote_spans(numbers))
    try:
        reading.begin(in_order(range(len(records)) if numbers is None else numbers))
        yield ranges
    finally:
        reading.close()


def in_order(numbers: Numbers) -> Iterator[Upcoming]:
    """Yield the samples with these numbers in their order."""
    for start in range(0, len(numbers), _ALL_AT_ONCE):
        some = np.asarray(numbers[start : start + _ALL_AT_ONCE]).astype(np.uint64)
        yield Upcoming(some, None, np.zeros(len(some), np.int64))

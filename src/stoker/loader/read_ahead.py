"""Reading ahead from stores: one thread plans, some fetch, and the core hands out the bytes.

::

    what comes next ──▶ Planner ──▶ RemoteRanges (queue, budget) ──▶ fetchers ──▶ store
                                          ▲   ▲────────────────────────┘ bytes
    decoding threads ────── take ─────────┘

Every thread is a daemon, starts when it is first needed, and ends with `Prefetcher.close` or with the loader.

The coming uses of samples are divided into *windows* of bounded bytes. While the samples of one window are used, those
of the next are fetched, so that two windows are held at a time. Within a window, pieces of a file that lie next to each
other, or nearly so, are one range, whatever the order of their use::

    uses, in order   c a d b e          file   a b . c d ........ e
    ranges           [a b . c d] [e]    asked for in the order of their first use
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
from stoker.loader.tracing import FetchLog
from stoker.storage import stopping_when

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from stoker.loader.selection import Numbers
    from stoker.storage import Location

    Column = NDArray[np.int64]
    Extents = tuple[Column, Column, Column]
    Read = Callable[[int, int, int], bytes]
    Locate = Callable[[NDArray[np.uint64], NDArray[np.int32] | None], Extents]


_WAIT_SECONDS = 3600.0  # then a thread checks whether to stop, and waits again
_JOIN_SECONDS = 0.5
_ANY_NUMBER = 2**62
_SAMPLES_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class RangeLimits:
    """How pieces become ranges."""

    window: int  # the most bytes of a window, at least 1, gaps included; a window of one use may have more
    gap: int  # up to this many bytes between two pieces are read, to save a request
    longest: int  # the most bytes of a range, at least 1; a longer piece is a range by itself
    uses: int = 1 << 16  # the most uses of a window, at least 1


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """How a loader reads ahead in a dataset that lies in a bucket or in HDFS; no effect on local files.

    A loader knows which samples it will need, and in which order, even in the next epoch. It requests their bytes as
    far ahead as the budget reaches, so that it waits for the store's latency once, and not once for each sample.
    `docs/how-to/buckets.md` says which numbers fit which store.

    Attributes:
        budget: The most bytes that are requested and not used yet, such as ``"1GB"`` or a number. Half of it is planned
            at a time, to join bytes that lie side by side.
        connections: Number of requests at a time.
        gap: Up to this many bytes between two samples are read, to save a request.
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
    """The files of one dataset, by the numbers that the core has for them. Immutable, and safe from any thread."""

    def __init__(self, count: int) -> None:
        self.first = _native.number_remote_files(count)  # unique in this process; the numbers of the other files follow

    @abstractmethod
    def read(self, number: int, offset: int, length: int) -> bytes:
        """Return bytes of a file by its number in this process; the core calls this where nothing is read ahead.

        Raises:
            StorageError, OSError: The file cannot be read, or an object has become shorter.
        """

    def attach_to(self, records: _native.RecordSet | _native.FileSet) -> None:
        """Make these the files of a native reader; it then reads them through `read`."""
        records.set_remote(_native.DirectReader(self.read), self.first)


class RemoteFiles(NumberedFiles):
    """Files in stores; some may be on this machine. ``path_of`` returns the path of each, by its number from 0."""

    def __init__(self, count: int, path_of: Callable[[int], Location]) -> None:
        super().__init__(count)
        self._path_of = path_of

    def read(self, number: int, offset: int, length: int) -> bytes:
        """Return bytes of a file. The core notices if a local file has become shorter; a store's file raises here."""
        path = self._path_of(number - self.first)
        data = path.read_range(offset, length, known_size=offset + length)
        if len(data) < length and not path.is_local:
            message = f"{path} has become shorter: it has {offset + len(data)} bytes, and {offset + length} are needed"
            raise StorageError(f"{message}; restore it, or build again", path=str(path))
        return data


@dataclass(frozen=True, slots=True)
class Upcoming:
    """The next samples in their order."""

    numbers: NDArray[np.uint64]  # uint64 (B,), images of the source
    objects: NDArray[np.int32] | None  # int32 (B,), which object of each; None: all whole
    # int64 (B,), which window of blocks each is in; see `window_end`
    group: NDArray[np.int64]


class Planner:
    """Turns what comes next into ranges, window by window. Safe from any thread.

    ``locate`` returns file, offset and length of samples, int64 (B,), given ``numbers`` and ``objects`` of `Upcoming`;
    file -1 for what need not be fetched. At most ``most_ahead`` samples beyond those that were released are planned.
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
        """Forget what was planned, and plan ``future`` from now on; uses count from 0 again."""
        with self._lock:
            self._ranges.forget()
            self._future = future
            self._has_future.set()
            self._seen = self._planned = 0
            self._waiting = np.empty((5, 0), np.int64)
            self._plan_window()

    def plan_until(self, use: int) -> None:
        """Plan all uses below a number, as far as the future has them."""
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
        # Now more than a window is waiting, or all that may be; or nothing, if nothing needs to be fetched.
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
        """Collect uses until they exceed a window, or until so many were seen that most need no fetching."""
        parts, waiting_bytes = [self._waiting], int(self._waiting[3].sum())
        most = self._seen + self._limits.uses
        while waiting_bytes <= self._limits.window and self._seen < most and self._future is not None:
            batch = next(self._future, None)
            if batch is None:
                self._future = None
                break
            file, offset, length = self._extents(batch)
            rows = np.flatnonzero(file >= 0)
            parts.append(np.stack([rows + self._seen, file[rows], offset[rows], length[rows], batch.group[rows]]))
            waiting_bytes += int(length[rows].sum())
            self._seen += len(file)
        self._waiting = np.concatenate(parts, axis=1)

    def _extents(self, batch: Upcoming) -> Extents:
        try:
            return self._locate(batch.numbers, batch.objects)
        except (StokerError, OSError):  # a damaged index; the thread that reads the sample raises it, with its name
            nowhere = np.full(len(batch.numbers), -1, np.int64)
            return nowhere, nowhere, nowhere


class Prefetcher:
    """Fetches what comes next, on threads of its own; for one consumer, which calls it from one thread."""

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
        """Start on another future; bytes that were fetched for the last one are freed."""
        self._start_threads()
        self._planned = self._released = 0
        self._planner.begin(future)

    def ensure_planned(self, samples: int) -> None:
        """Plan this many more samples, which are about to be requested."""
        self._planned += samples
        self._planner.plan_until(self._planned)

    def release(self, samples: int) -> None:
        """Free the bytes of this many more samples: loaded or not, they are not requested again."""
        self._released += samples
        self._ranges.release_until(self._released)

    def close(self) -> None:
        """Stop. Waiting threads get an error; requests that hang are left alone. Does nothing in a forked process."""
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
    """Return a function that reads files of several datasets by number, on any thread, until ``stop`` is set."""
    ordered = sorted(files, key=lambda each: each.first)
    firsts = [each.first for each in ordered]

    def read(number: int, offset: int, length: int) -> bytes:
        with stopping_when(stop):
            return ordered[bisect.bisect_right(firsts, number) - 1].read(number, offset, length)

    return read


def _fetch(ranges: _native.RemoteRanges, read: Read, log: FetchLog, fetcher: int) -> None:
    """Fetch on one thread. It holds no reference to the prefetcher, which otherwise could never be freed."""
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
    """Read all or some records ahead while the body of ``with`` goes through them in order; None for local ones."""
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
    for start in range(0, len(numbers), _SAMPLES_AT_ONCE):
        chunk = np.asarray(numbers[start : start + _SAMPLES_AT_ONCE]).astype(np.uint64)
        yield Upcoming(chunk, None, np.zeros(len(chunk), np.int64))


# Which byte ranges to ask a store for: pure functions of arrays.


@dataclass(frozen=True, slots=True)
class RangePlan:
    """Ranges of a window in the order in which they are asked for, each an entry in columns of int64.

    The pieces of range ``i`` are rows ``starts[i]`` to ``starts[i + 1]`` of the columns of pieces, in the order of
    their offsets, no two the same.
    """

    file: Column
    offset: Column  # its first byte
    length: Column
    first_use: Column  # the first use of any of its pieces, counted from the start of the window
    last_use: Column
    starts: Column  # where its pieces begin, and after the last range, where they end
    piece_offset: Column  # first byte of each piece
    piece_length: Column
    piece_uses: Column  # how often it is used


@dataclass(frozen=True, slots=True)
class _Pieces:
    file: Column
    offset: Column
    length: Column
    uses: Column
    first_use: Column
    last_use: Column


def window_end(length: Column, group: Column, limits: RangeLimits) -> int:
    """Return how many of the coming uses are the next window; 0 if there are none.

    A window is the longest run whose bytes fit. If that run reaches into another group, it ends with the last whole
    group: a block shuffle uses up some blocks before it goes to others, and cutting there leaves no block half read.
    Uses of one group lie side by side.
    """
    length = length[: limits.uses + 1]
    fits = int(np.searchsorted(np.cumsum(length), limits.window, side="right"))
    end = min(max(1, fits), limits.uses, len(length))
    changes = np.flatnonzero(np.diff(group[: end + 1])) + 1
    return int(changes[-1]) if end < len(length) and len(changes) else end


def plan_ranges(file: Column, offset: Column, length: Column, limits: RangeLimits) -> RangePlan:
    """Return the ranges that hold all uses of one window, given in their order; each has at least one byte."""
    if len(file) == 0:
        return RangePlan(*(file,) * 5, np.zeros(1, np.int64), *(file,) * 3)
    pieces = _distinct(file, offset, length)
    return _ranges(pieces, _heads(pieces, limits))


def _distinct(file: Column, offset: Column, length: Column) -> _Pieces:
    order = _order(file, offset, length)
    columns = [column[order] for column in (file, offset, length)]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    heads = np.flatnonzero(fresh)
    file, offset, length = (column[heads] for column in columns)
    uses = np.diff(heads, append=len(order))
    # The sort is stable: equal pieces stand in the order of their uses.
    return _Pieces(file, offset, length, uses, order[heads], order[heads + uses - 1])


def _order(file: Column, offset: Column, length: Column) -> Column:
    """Return the order by file, offset and length; equal pieces stay in the order of their uses."""
    bits = [int(column.max(initial=0)).bit_length() for column in (file, offset)]
    if sum(bits) < 63:  # one sort of one key is three times as fast
        key = file << bits[1] | offset
        order = np.argsort(key, kind="stable")
        same = key[order[1:]] == key[order[:-1]]
        if (length[order[1:]][same] == length[order[:-1]][same]).all():
            return order
    return np.lexsort((length, offset, file))


def _heads(pieces: _Pieces, limits: RangeLimits) -> Column:
    end = _running_end(pieces)
    same = pieces.file[1:] == pieces.file[:-1]
    gaps = np.maximum(pieces.offset[1:] - end[:-1], 0)
    joined = same & (gaps <= limits.gap)
    joined &= ~_too_much(pieces, np.where(joined, gaps, 0), limits)
    runs = np.concatenate(([0], np.flatnonzero(~joined) + 1))
    run_ends = np.append(runs[1:], len(end))
    long = np.flatnonzero(end[run_ends - 1] - pieces.offset[runs] > limits.longest)
    extra = [_cuts(pieces.offset, end, int(runs[i]), int(run_ends[i]), limits.longest) for i in long]
    return np.sort(np.concatenate([runs, *extra])) if extra else runs


def _running_end(pieces: _Pieces) -> Column:
    """Return where the bytes of each piece and of those before it in its file end: they may overlap."""
    end = pieces.offset + pieces.length
    same = pieces.file[1:] == pieces.file[:-1]
    if not (same & (end[1:] < end[:-1])).any():
        return end
    order = np.lexsort((end, pieces.file))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    # By rank, the pieces of a file follow all of earlier files, so that the maximum never reaches across files.
    return end[order[np.maximum.accumulate(rank)]]


def _too_much(pieces: _Pieces, gaps: Column, limits: RangeLimits) -> NDArray[np.bool_]:
    """Return which gaps would make the window larger than allowed if all smaller gaps are read too."""
    spare = max(0, limits.window - int(pieces.length.sum()))
    order = np.argsort(gaps, kind="stable")
    over = np.empty(len(gaps), np.bool_)
    over[order] = np.cumsum(gaps[order]) > spare
    return over & (gaps > 0)


def _cuts(offset: Column, end: Column, first: int, last: int, longest: int) -> Column:
    """Return where a run of pieces that is too long is cut, so that each range is as long as allowed."""
    cuts: list[int] = []
    while True:
        # `end` grows within a file, so the first piece that does not fit any more is found by bisection.
        first += max(1, int(np.searchsorted(end[first:last], offset[first] + longest, side="right")))
        if first >= last:
            return np.array(cuts, np.int64)
        cuts.append(first)


def _ranges(pieces: _Pieces, heads: Column) -> RangePlan:
    counts = np.diff(heads, append=len(pieces.file))
    offset = pieces.offset[heads]
    end = np.maximum.reduceat(pieces.offset + pieces.length, heads)
    first, last = np.minimum.reduceat(pieces.first_use, heads), np.maximum.reduceat(pieces.last_use, heads)
    order = np.argsort(first)
    starts = np.concatenate(([0], np.cumsum(counts[order])))
    each = np.repeat(heads[order] - starts[:-1], counts[order]) + np.arange(starts[-1])
    return RangePlan(
        file=pieces.file[heads][order],
        offset=offset[order],
        length=(end - offset)[order],
        first_use=first[order],
        last_use=last[order],
        starts=starts,
        piece_offset=pieces.offset[each],
        piece_length=pieces.length[each],
        piece_uses=pieces.uses[each],
    )

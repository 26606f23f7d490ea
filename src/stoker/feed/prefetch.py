"""Reading ahead from stores: one thread plans, some fetch, and the core hands out the bytes.

::

    schedule ──▶ planner ──▶ RemoteRanges (queue, budget) ──▶ fetchers ──▶ store
                                   ▲   ▲────────────────────────┘ bytes
    decoding threads ── take ──────┘

Every thread is a daemon, starts when it is first needed, and ends with `Prefetcher.close` or with the loader.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stoker import _native
from stoker.feed.planner import Planner
from stoker.feed.read_ahead import ReadAhead
from stoker.feed.remote_files import RemoteFiles, StoppableFiles
from stoker.feed.schedule import everything
from stoker.feed.trace import FetchLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stoker.feed.planner import Locate
    from stoker.feed.schedule import Upcoming

_LONG = 3600.0
_JOIN_SECONDS = 0.5
_ANY_NUMBER = 2**62


class Prefetcher:
    """Fetches what comes next. `begin`, `need`, `over` belong to one consumer thread.

    Args:
        files: The remote files of all datasets.
        settings: How far ahead, and with how many requests.
        ranges: What hands out the bytes.
        locate: Tells where samples lie.
        most_ahead: The most samples that are planned beyond those that are over.

    Attributes:
        log: Of the requests.
    """

    def __init__(
        self,
        files: Sequence[RemoteFiles],
        settings: ReadAhead,
        ranges: _native.RemoteRanges,
        locate: Locate,
        most_ahead: int = _ANY_NUMBER,
    ) -> None:
        self._ranges = ranges
        self._connections = settings.connections
        self._stop = threading.Event()
        self._files = StoppableFiles(files, self._stop)
        self._planner = Planner(ranges, locate, settings.limits(), most_ahead)
        self._threads: list[threading.Thread] = []
        self.log = FetchLog()
        self._process = os.getpid()
        self._needed = self._over = 0

    def begin(self, future: Iterator[Upcoming]) -> None:
        """Go to another future; what was fetched for the one before is let go of."""
        self._start_threads()
        self._needed = self._over = 0
        self._planner.begin(future)

    def need(self, samples: int) -> None:
        """Samples are about to be asked for: see that they are planned."""
        self._needed += samples
        self._planner.plan_until(self._needed)

    def over(self, samples: int) -> None:
        """Samples were loaded, or not: nobody will ask for them any more."""
        self._over += samples
        self._ranges.release_until(self._over)

    def close(self) -> None:
        """Stop. Whoever waits gets an error; requests that hang are left alone. In a forked process: nothing."""
        if os.getpid() != self._process:
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
        works += [_Fetcher(self._ranges, self._files, self.log, i).run for i in range(self._connections)]
        for work in works:
            thread = threading.Thread(target=work, name="stoker-ahead", daemon=True)
            thread.start()
            self._threads.append(thread)


class _Fetcher:
    """What the threads that fetch hold on to: not the prefetcher, whose end is theirs."""

    def __init__(self, ranges: _native.RemoteRanges, files: StoppableFiles, log: FetchLog, number: int) -> None:
        self._ranges = ranges
        self._files = files
        self._log = log
        self._number = number

    def run(self) -> None:
        while not self._ranges.closed:
            job = self._ranges.next(_LONG)
            if job is not None:
                self._fetch(*job)

    def _fetch(self, number: int, file: int, offset: int, length: int) -> None:
        begun = time.monotonic_ns()
        try:
            data = self._files.read(file, offset, length)
        except BaseException as error:  # noqa: BLE001 - a thread root: whoever takes the bytes gets it
            self._ranges.fail(number, error)
        else:
            self._ranges.deliver(number, data)
        if self._log.on:
            self._log.add(self._number, begun, length)


@contextmanager
def read_through(files: RemoteFiles | None, records: _native.RecordSet) -> Iterator[_native.RemoteRanges | None]:
    """Read all records ahead in their order while the body of ``with`` goes through them; nothing for local ones."""
    if files is None:
        yield None
        return
    settings = ReadAhead()
    ranges = _native.RemoteRanges(settings.budget_bytes)
    reading = Prefetcher([files], settings, ranges, lambda numbers, _=None: records.remote_places(numbers))
    try:
        reading.begin(everything(len(records)))
        yield ranges
    finally:
        reading.close()

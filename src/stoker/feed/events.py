"""What the threads of a loader do when: events, for traces."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stoker.errors import ConfigError
from stoker.feed.stats import STAGES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stoker import _native

EVENT = np.dtype(
    [("begin", "<u8"), ("end", "<u8"), ("key", "<u8"), ("batch", "<u4"), ("thread", "<u2"), ("what", "<u2")]
)
"""One event, from ``begin`` to ``end`` in nanoseconds of `time.monotonic_ns`; ``batch`` counts from 0.

``key`` is the sample's; of the consumer's events how many batches it found ready, and of ``fetch`` the bytes."""

_CONSUMER = {100: "wait", 101: "gil", 102: "consume"}
_FETCH = 200
NAMES = dict(enumerate(STAGES)) | _CONSUMER | {_FETCH: "fetch"}
"""What the numbers of ``what`` stand for: the stages, what the consumer does, and a request to a store."""


class FetchLog:
    """Requests to stores while somebody wants to know of them. Safe from any thread."""

    def __init__(self) -> None:
        self.on = False
        self._done: deque[tuple[int, int, int, int]] = deque()
        self._most = 0
        self._lost = 0
        self._lock = threading.Lock()

    def start(self, most: int) -> None:
        """Keep up to so many, and nothing of an earlier time."""
        with self._lock:
            self._done.clear()
            self._most, self._lost, self.on = most, 0, True

    def add(self, fetcher: int, begin: int, size_bytes: int) -> None:
        """A request that began then is done, or has failed; the fetchers of a loader are numbered from 0."""
        with self._lock:
            if len(self._done) < self._most:
                self._done.append((begin, time.monotonic_ns(), size_bytes, fetcher))
            else:
                self._lost += 1

    def take(self, first_thread: int) -> tuple[NDArray[np.void], int]:
        """Return what is kept, fetcher 0 as thread ``first_thread``, and how many were lost."""
        with self._lock:
            done, self._done = self._done, deque()
            lost, self._lost = self._lost, 0
        rows = [(begin, end, size, 0, first_thread + fetcher, _FETCH) for begin, end, size, fetcher in done]
        return np.array(rows, EVENT), lost


@dataclass(frozen=True, slots=True)
class EventLog:
    """The events of one loader; see `stoker.feed.Loader.events`. For one thread.

    Attributes:
        threads: Names of the threads, by their number.
    """

    engine: _native.BatchEngine
    fetches: FetchLog | None
    first_fetcher: int
    threads: tuple[str, ...]

    def start(self, most: int) -> None:
        """Keep events from now on, up to ``most`` of each thread until they are taken.

        Raises:
            ConfigError: Somebody else takes them already.
        """
        if self.engine.is_traced():
            raise ConfigError("this loader is being traced already; one trace at a time")
        self.engine.start_trace(most)
        if self.fetches is not None:
            self.fetches.start(most)

    def stop(self) -> None:
        """Keep nothing more."""
        self.engine.stop_trace()
        if self.fetches is not None:
            self.fetches.on = False

    def take(self) -> tuple[NDArray[np.void], int]:
        """Return the events since the last call, of type `EVENT`, shape (N,), and how many were lost."""
        raw, lost = self.engine.take_trace()
        events = np.frombuffer(raw, EVENT)
        if self.fetches is None:
            return events, lost
        fetched, lost_fetches = self.fetches.take(self.first_fetcher)
        return np.concatenate([events, fetched]), lost + lost_fetches


def event_log(engine: _native.BatchEngine, threads: int, fetches: FetchLog | None, connections: int) -> EventLog:
    """Return the log of an engine with so many threads, and of what is fetched for it."""
    names = [*(f"decode {number}" for number in range(threads)), "replace", "consumer"]
    fetchers = [f"fetch {number}" for number in range(connections)] if fetches is not None else []
    return EventLog(engine, fetches, len(names), (*names, *fetchers))

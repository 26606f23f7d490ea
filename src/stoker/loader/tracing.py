"""Traces: files that show what the threads of a loader do, and when.

A trace is JSON in Chrome's "Trace Event Format", for https://ui.perfetto.dev and chrome://tracing. It has complete
events (``X``) in microseconds, names of threads (``M``), and a counter (``C``) of the batches that were ready when the
consumer asked for one.
"""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
from collections import deque
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from stoker.errors import ConfigError
from stoker.forks import process_number
from stoker.loader.stats import STAGES

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from numpy.typing import NDArray

    from stoker import _native


EVENT = np.dtype(
    [("begin", "<u8"), ("end", "<u8"), ("value", "<u8"), ("batch", "<u4"), ("thread", "<u2"), ("what", "<u2")]
)
"""One event, from ``begin`` to ``end`` in nanoseconds of `time.monotonic_ns`; ``batch`` counts from 0.

``value`` is the index of the sample; for events of the consumer, the batches that were ready; for ``fetch``, bytes."""

_CONSUMER = {100: "wait", 101: "gil", 102: "consume"}
_FETCH = 200
_NAMES = dict(enumerate(STAGES)) | _CONSUMER | {_FETCH: "fetch"}
"""Names of the numbers of ``what``: the stages, actions of the consumer, and a request to a store."""

_POLL_SECONDS = 0.1
_MOST_BETWEEN_POLLS = 1 << 16  # events of a thread


class FetchLog:
    """Requests to stores, recorded while a trace runs. Safe from any thread."""

    def __init__(self) -> None:
        self.on = False
        self._done: deque[tuple[int, int, int, int]] = deque()
        self._most = 0
        self._lost = 0
        self._lock = threading.Lock()

    def start(self, most: int) -> None:
        """Record up to ``most`` requests from now on, and forget earlier ones."""
        with self._lock:
            self._done.clear()
            self._most, self._lost, self.on = most, 0, True

    def add(self, fetcher: int, begin: int, size_bytes: int) -> None:
        """Record a request that began at ``begin`` (`time.monotonic_ns`) and has ended now, also if it failed."""
        with self._lock:
            if len(self._done) < self._most:
                self._done.append((begin, time.monotonic_ns(), size_bytes, fetcher))
            else:
                self._lost += 1

    def take(self, first_thread: int) -> tuple[NDArray[np.void], int]:
        """Return the recorded requests, fetcher 0 as thread ``first_thread``, and how many were lost; forget both."""
        with self._lock:
            done, self._done = self._done, deque()
            lost, self._lost = self._lost, 0
        rows = [(begin, end, size, 0, first_thread + fetcher, _FETCH) for begin, end, size, fetcher in done]
        return np.array(rows, EVENT), lost


class EventLog:
    """The events of one loader; see `stoker.loader.Loader.events`. For one thread."""

    def __init__(self, engine: _native.BatchEngine, threads: int, fetches: FetchLog, connections: int) -> None:
        self._engine, self._fetches = engine, fetches
        names = [*(f"decode {number}" for number in range(threads)), "replace", "consumer"]
        self._first_fetcher = len(names)
        self.threads = (*names, *(f"fetch {number}" for number in range(connections)))

    def start(self, most: int) -> None:
        """Record events from now on, up to ``most`` of each thread until they are taken."""
        if self._engine.is_traced():
            raise ConfigError("this loader is being traced already; one trace at a time")
        self._engine.start_trace(most)
        self._fetches.start(most)

    def stop(self) -> None:
        """Record nothing more."""
        self._engine.stop_trace()
        self._fetches.on = False

    def take(self) -> tuple[NDArray[np.void], int]:
        """Return the events since the last call, of type `EVENT`, shape (N,), and how many were lost."""
        raw, lost = self._engine.take_trace()
        fetched, lost_fetches = self._fetches.take(self._first_fetcher)
        return np.concatenate([np.frombuffer(raw, EVENT), fetched]), lost + lost_fetches


class Trace:
    """Traces a loader while a ``with`` block runs; returned by `stoker.trace`.

    Attributes:
        events: Events in the file so far.
        lost: Events that are not in the file, because there were too many.
    """

    def __init__(self, log: EventLog, path: Path, most: int) -> None:
        self._log = log
        self._path = path
        self._most = most
        self._stop = threading.Event()
        self._writer = threading.Thread(target=self._write_on, name="stoker-trace", daemon=True)
        self._error: OSError | None = None
        self._process = process_number()
        self.events = self.lost = 0

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            self._log.start(_MOST_BETWEEN_POLLS)
            undo.callback(self._log.stop)
            self._file: TextIO = undo.enter_context(_opened(self._path))
            self._file.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
            process = os.getpid()
            rows = [_meta("process_name", process, 0, "stoker")]
            rows += [_meta("thread_name", process, number, name) for number, name in enumerate(self._log.threads)]
            self._file.write(",\n".join(map(json.dumps, rows)))
            self._file.flush()
            undo.pop_all()
        self._writer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._process != process_number():  # a fork: the log and the file are the parent's
            return
        self._log.stop()
        self._stop.set()
        self._writer.join()
        with self._file:
            if self._error is None:
                self._file.write(f'\n], "otherData": {{"lost": {self.lost}}}}}\n')
        if self._error is not None and kind is None:
            raise self._error

    def _write_on(self) -> None:
        over = False
        while not over:
            over = self._stop.wait(_POLL_SECONDS)
            events, lost = self._log.take()
            left = max(0, self._most - self.events)
            self.lost += lost + max(0, len(events) - left)
            try:
                self._write(events[:left])
            except OSError as error:  # such as a full disk: raised where the block ends
                self._error = error
                self._log.stop()
                return

    def _write(self, events: NDArray[np.void]) -> None:
        process = os.getpid()
        for begin, end, value, batch, thread, what in events.tolist():
            name = _NAMES[what]
            row: dict[str, Any] = {"name": name, "ph": "X", "pid": process, "tid": thread}
            row |= {"ts": begin / 1000, "dur": (end - begin) / 1000}
            row["args"] = {"bytes": value} if name == "fetch" else {"batch": batch}
            if name in ("wait", "gil", "consume"):
                row["cat"] = "consumer"
            elif name != "fetch":
                row["args"]["sample"] = value
            self._file.write(",\n" + json.dumps(row))
            if name == "wait":
                ready = {"name": "ready batches", "ph": "C", "pid": process, "ts": begin / 1000}
                self._file.write(",\n" + json.dumps(ready | {"args": {"ready": value}}))
        self._file.flush()  # otherwise a forked process may write the same bytes again when it ends
        self.events += len(events)


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "wt", encoding="utf-8", compresslevel=3)
    return path.open("w", encoding="utf-8")


def _meta(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}

"""``stoker.trace``: what every thread of a loader does when, as a file for https://ui.perfetto.dev and chrome://tracing.

The format is the JSON of Chrome's trace viewer, "Trace Event Format": complete events (``X``) with times in
microseconds, names of threads (``M``), and a counter (``C``) of the batches that were ready when one was asked for.
"""

from __future__ import annotations

import gzip
import json
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from stoker.diagnosis.adapters import loader_of
from stoker.feed.events import NAMES

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    import numpy as np
    from numpy.typing import NDArray

    from stoker.feed import Loader
    from stoker.feed.events import EventLog

_POLL_SECONDS = 0.1
_KEPT = 1 << 16  # events of a thread between two looks
_MOST = 2_000_000


class Trace:
    """Traces a loader while a ``with`` block runs. Made by `trace`.

    Attributes:
        events: Events in the file so far.
        lost: Events that are not in it, because there were too many.
    """

    def __init__(self, log: EventLog, path: Path, most: int) -> None:
        self._log = log
        self._path = path
        self._most = most
        self._stop = threading.Event()
        self._writer = threading.Thread(target=self._write_on, name="stoker-trace", daemon=True)
        self._error: OSError | None = None
        self.events = self.lost = 0

    def __enter__(self) -> Self:
        self._log.start(_KEPT)
        try:
            self._file: TextIO = _opened(self._path)
        except BaseException:
            self._log.stop()
            raise
        self._file.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
        process = os.getpid()
        rows = [_meta("process_name", process, 0, "stoker")]
        rows += [_meta("thread_name", process, number, name) for number, name in enumerate(self._log.threads)]
        self._file.write(",\n".join(map(json.dumps, rows)))
        self._writer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._log.stop()
        self._stop.set()
        self._writer.join()
        with self._file:
            if self._error is None:
                self._file.write(f'\n], "otherData": {{"lost": {self.lost}}}}}\n')
        if self._error is not None and error is None:
            raise self._error

    def _write_on(self) -> None:
        over = False
        while not over:
            over = self._stop.wait(_POLL_SECONDS)
            events, lost = self._log.take()
            room = self._most - self.events
            self.lost += lost + max(0, len(events) - room)
            try:
                self._write(events[: max(0, room)])
            except OSError as error:  # of the disk, for whoever leaves the block
                self._error = error
                self._log.stop()
                return

    def _write(self, events: NDArray[np.void]) -> None:
        process = os.getpid()
        for begin, end, key, batch, thread, what in events.tolist():
            name = NAMES[what]
            row: dict[str, Any] = {"name": name, "ph": "X", "pid": process, "tid": thread}
            row |= {"ts": begin / 1000, "dur": (end - begin) / 1000}
            row["args"] = {"bytes": key} if name == "fetch" else {"batch": batch}
            if name in ("wait", "gil", "consume"):
                row["cat"] = "consumer"
            elif name != "fetch":
                row["args"]["sample"] = key
            self._file.write(",\n" + json.dumps(row))
            if name == "wait":
                ready = {"name": "ready batches", "ph": "C", "pid": process, "ts": begin / 1000}
                self._file.write(",\n" + json.dumps(ready | {"args": {"ready": key}}))
        self.events += len(events)


def trace(loader: Loader | Any, path: str | Path, *, most: int = _MOST) -> Trace:
    """Write what every thread of a loader does while a ``with`` block runs.

    Costs a few percent of the decoding threads' time, and about 120 bytes of file an event, of which a JPEG makes five;
    ``.gz`` at the end of the name compresses them to a tenth.

    Args:
        loader: A `stoker.Loader`, or an adapter that has one as its ``loader``, as `stoker.torch.DataLoader`.
        path: The file to write; for https://ui.perfetto.dev or chrome://tracing.
        most: Events in the file at the most; the others are counted in `Trace.lost` and in the file.

    Raises:
        ConfigError: There is no loader in it, or it is being traced already.
        OSError: The file cannot be written; raised when the block begins, or when it ends.

    Example:
        >>> with stoker.trace(loader, "input.trace.json.gz"):  # doctest: +SKIP
        ...     train(loader)
    """
    return Trace(loader_of(loader).events(), Path(path), most)


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "wt", encoding="utf-8", compresslevel=3)
    return path.open("w", encoding="utf-8")


def _meta(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}

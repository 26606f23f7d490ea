"""What a loader has done so far, and where the time went; what its threads do when, in the file of a trace.

The counters are the core's: a thread adds to its own, and nothing is locked. Where samples take a few microseconds, as
raw pixels do, one of 16 is timed and stands for all of them.

The file is for https://ui.perfetto.dev and chrome://tracing: the JSON of Chrome's "Trace Event Format", with complete
events (``X``) in microseconds, names of threads (``M``), and a counter (``C``) of the batches that were ready when one
was asked for.
"""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from stoker.errors import ConfigError
from stoker.forks import process_number

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Self

    from numpy.typing import NDArray

    from stoker import _native


STAGES = ("read", "remote", "check", "parse", "convert", "decode", "resample", "write")
"""What a decoding thread does with a sample, in this order; `LoaderStats.stages` says what each of them is."""
_NANO = 1e-9

EVENT = np.dtype(
    [("begin", "<u8"), ("end", "<u8"), ("value", "<u8"), ("batch", "<u4"), ("thread", "<u2"), ("what", "<u2")]
)
"""One event, from ``begin`` to ``end`` in nanoseconds of `time.monotonic_ns`; ``batch`` counts from 0.

``value`` is the index of the sample; of the consumer's events the batches that were ready, of ``fetch`` the bytes."""

_CONSUMER = {100: "wait", 101: "gil", 102: "consume"}
_FETCH = 200
_NAMES = dict(enumerate(STAGES)) | _CONSUMER | {_FETCH: "fetch"}
"""What the numbers of ``what`` stand for: the stages, what the consumer does, and a request to a store."""

_POLL_SECONDS = 0.1
_KEPT = 1 << 16  # events of a thread between two polls


@dataclass(frozen=True, slots=True)
class StageStats:
    """One stage.

    Attributes:
        count: Samples that went through it.
        seconds: Time that all threads together spent in it, by the clock: waiting for a disk or for a CPU counts.
    """

    count: int
    seconds: float

    def __sub__(self, earlier: StageStats) -> StageStats:
        """Return what was done in between."""
        return StageStats(self.count - earlier.count, self.seconds - earlier.seconds)


@dataclass(frozen=True, slots=True)
class LoaderStats:
    """Figures of one loader, all since it was made; ``later - earlier`` is what was done in between.

    Attributes:
        seconds: By the clock.
        batches: Handed out.
        samples: In them.
        wait_seconds: The consumer was blocked, waiting for a batch.
        gil_seconds: The part of that in which the batch was there, and the consumer waited for the GIL.
        consumer_seconds: Between taking a batch and asking for the next of the same epoch.
        ready_batches: Finished batches that were there when the consumer asked, summed over its requests.
        threads: Decoding threads.
        busy_seconds: They had work, all together.
        idle_seconds: They had none: everything that may be decoded ahead was.
        cpu_seconds: CPU time they used; None where the system does not tell.
        bytes_read: Of records or files, from a disk, a cache on it, or a store.
        stages: ``read``: bytes from files or a cache; ``remote``: waiting for a store; ``check``: checksums;
            ``parse``: finding image, label and boxes; ``convert``: Pillow decodes a format that the core does not;
            ``decode``: an image file to pixels; ``resample``: to the transforms' sizes and colours; ``write``: into the
            batch, where its values are not those of the transform, or where raw pixels are copied and checked in one
            pass.
    """

    seconds: float
    batches: int
    samples: int
    wait_seconds: float
    gil_seconds: float
    consumer_seconds: float
    ready_batches: int
    threads: int
    busy_seconds: float
    idle_seconds: float
    cpu_seconds: float | None
    bytes_read: int
    stages: Mapping[str, StageStats]

    def __sub__(self, earlier: LoaderStats) -> LoaderStats:
        """Return what was done in between."""
        values: dict[str, Any] = {}
        for field in fields(self):
            new, old = getattr(self, field.name), getattr(earlier, field.name)
            values[field.name] = None if new is None or old is None else new - old if field.name in _SUMS else new
        values["stages"] = {name: stage - earlier.stages[name] for name, stage in self.stages.items()}
        return LoaderStats(**values)

    def scalars(self) -> dict[str, float]:
        """Return figures for a training log, by name: rates and shares, of the time that these figures are about.

        Any writer takes them: ``for name, value in scalars.items(): writer.add_scalar(name, value, step)``.
        """
        seconds, threads = max(self.seconds, _NANO), max(self.busy_seconds + self.idle_seconds, _NANO)
        figures = {
            "input/images_per_second": self.samples / seconds,
            "input/bytes_per_second": self.bytes_read / seconds,
            "input/wait_share": self.wait_seconds / max(self.wait_seconds + self.consumer_seconds, _NANO),
            "input/gil_share": self.gil_seconds / max(self.wait_seconds + self.consumer_seconds, _NANO),
            "input/ready_batches": self.ready_batches / max(self.batches, 1),
            "input/threads_busy_share": self.busy_seconds / threads,
        }
        for name, stage in self.stages.items():
            figures[f"input/{name}_share"] = stage.seconds / threads
        return figures

    def prometheus(self, labels: Mapping[str, str] | None = None) -> str:
        """Return the counters in Prometheus's text format, to be served by whatever serves the process's metrics.

        Args:
            labels: Of every line, for example ``{"split": "train", "rank": "0"}``.
        """
        given = dict(labels or {})
        lines: list[str] = []
        for name, kind, text, value in self._metrics():
            lines += [f"# HELP stoker_{name} {text}", f"# TYPE stoker_{name} {kind}"]
            values = value if isinstance(value, dict) else {None: value}
            for stage, number in values.items():
                lines.append(f"stoker_{name}{_labels(given if stage is None else given | {'stage': stage})} {number!r}")
        return "\n".join(lines) + "\n"

    def _metrics(self) -> list[tuple[str, str, str, float | dict[str, float]]]:
        metrics: list[tuple[str, str, str, float | dict[str, float]]] = [
            ("batches_total", "counter", "Batches handed out.", self.batches),
            ("samples_total", "counter", "Samples handed out.", self.samples),
            ("read_bytes_total", "counter", "Bytes of records or files read.", self.bytes_read),
            ("wait_seconds_total", "counter", "The consumer was blocked, waiting for a batch.", self.wait_seconds),
            ("gil_seconds_total", "counter", "The part of that spent waiting for the GIL.", self.gil_seconds),
            ("consumer_seconds_total", "counter", "The consumer was busy with a batch.", self.consumer_seconds),
            ("ready_batches_total", "counter", "Finished batches found at each request.", self.ready_batches),
            ("busy_seconds_total", "counter", "Decoding threads had work.", self.busy_seconds),
            ("idle_seconds_total", "counter", "Decoding threads had no work.", self.idle_seconds),
            ("threads", "gauge", "Decoding threads.", self.threads),
        ]
        if self.cpu_seconds is not None:
            metrics.append(("cpu_seconds_total", "counter", "CPU time of decoding threads.", self.cpu_seconds))
        seconds: dict[str, float] = {name: stage.seconds for name, stage in self.stages.items()}
        counts: dict[str, float] = {name: stage.count for name, stage in self.stages.items()}
        metrics.append(("stage_seconds_total", "counter", "Time of decoding threads in each stage.", seconds))
        metrics.append(("stage_samples_total", "counter", "Samples that went through each stage.", counts))
        return metrics


_SUMS = {field.name for field in fields(LoaderStats)} - {"threads", "stages"}


def stats_of(totals: Mapping[str, Any], seconds: float) -> LoaderStats:
    """Return what the core has counted, `_native.BatchEngine.totals`, ``seconds`` after it began."""
    cpu = totals["cpu_ns"]
    return LoaderStats(
        seconds=seconds,
        batches=totals["batches"],
        samples=totals["samples"],
        wait_seconds=totals["wait_ns"] * _NANO,
        gil_seconds=totals["handover_ns"] * _NANO,
        consumer_seconds=totals["consume_ns"] * _NANO,
        ready_batches=totals["ready"],
        threads=totals["threads"],
        busy_seconds=totals["busy_ns"] * _NANO,
        idle_seconds=totals["idle_ns"] * _NANO,
        cpu_seconds=None if cpu is None else cpu * _NANO,
        bytes_read=totals["bytes_read"],
        stages={name: StageStats(count, spent * _NANO) for name, (count, spent) in totals["stages"].items()},
    )


def _labels(labels: Mapping[str, str]) -> str:
    """Return labels as the text format spells them: backslash, quote and newline are escaped."""
    escaped = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
    inside = ",".join(f'{name}="{value.translate(escaped)}"' for name, value in labels.items())
    return f"{{{inside}}}" if inside else ""


class FetchLog:
    """Requests to stores, recorded while a trace runs. Safe from any thread."""

    def __init__(self) -> None:
        self.on = False
        self._done: deque[tuple[int, int, int, int]] = deque()
        self._most = 0
        self._lost = 0
        self._lock = threading.Lock()

    def start(self, most: int) -> None:
        """Keep up to ``most`` requests, and none from before."""
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
        """Return and forget what was recorded, fetcher 0 as thread ``first_thread``, and how many were lost."""
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
        lost: Events that are not in it, because there were too many.
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
            self._log.start(_KEPT)
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
        self._file.flush()  # or a process that is forked may write the same once more when it ends
        self.events += len(events)


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "wt", encoding="utf-8", compresslevel=3)
    return path.open("w", encoding="utf-8")


def _meta(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}

"""Diagnosis of a user's own training loop: one verdict from the statistics of the loader and of the system.

A thread reads the loader's counters again and again, and adds up the differences while batches are taken:

::

    entered ── first batches: dropped ── counted ── a validation between two epochs: dropped ── counted ── left

How late this thread wakes from a sleep shows how often the GIL was held: a thread gets a free GIL at once, and waits
for a held one until Python makes the holder release it, after 5 ms. The time that the thread waited for a CPU, which
the system reports, is subtracted.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stoker.config import available_cpus
from stoker.errors import ConfigError
from stoker.inspect.diagnosis_decision import Consumer, DoctorReport, Evidence, Files, OtherThread, Setup, decide
from stoker.inspect.measuring import cached_bytes, files_of
from stoker.loader import Loader, LoaderStats, cpu_share, loader_in, parts_of
from stoker.order import BlockShuffle
from stoker.recipe import missing_libraries

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

    from stoker.loader import Dataset, Mix

_SLEEP_SECONDS = 0.008
_LATE_SECONDS = 0.001
_WARM_UP_SECONDS = 1.0
"""Ends the warm-up of a slow consumer sooner: the loader's queue of batches fills up during one step."""
_GAP_SECONDS, _GAP_SHARE = 0.05, 0.2
"""Time between two readings of the counters, neither waiting nor consuming, above which it is not counted."""
_SYSTEM_SECONDS = 0.1
_OWN_THREADS = "stoker-"


def doctor(loader: Any, *, quiet: bool = False) -> Doctor:
    """Find out why a training loop is as slow as it is, while it runs.

    ::

        with stoker.doctor(loader) as doctor:
            train(loader)
        doctor.report.verdict, doctor.report.remedy

    Enter the block in the thread that runs the loop: its CPU time says what the loop does between batches. The first
    batches are not counted, nor is the time between two epochs. The loop gets the same batches as without it.

    Args:
        loader: A `stoker.Loader`, `stoker.torch.DataLoader`, or anything that has a `stoker.Loader` as its ``loader``.
        quiet: Whether the report is only kept in ``report``, and not printed on standard error.

    Returns:
        A context manager; its ``report`` is a `DoctorReport` when the ``with`` block is over.

    Raises:
        ConfigError: ``loader`` is not a loader.
    """
    return Doctor(loader_in(loader), quiet=quiet)


@dataclass(frozen=True, slots=True)
class _State:
    """Counters at one moment; ``later - earlier`` counts what happened in between."""

    at: float  # seconds of the clock
    stats: LoaderStats
    loop: ThreadTime  # of the thread that runs the training loop
    slept: float  # seconds that the thread of the doctor slept
    held: float  # seconds of those sleeps after which the GIL was held

    def __sub__(self, other: _State) -> _State:
        stats, loop = self.stats - other.stats, self.loop - other.loop
        return _State(self.at - other.at, stats, loop, self.slept - other.slept, self.held - other.held)

    @property
    def loop_seconds(self) -> float:
        return self.stats.wait_seconds + self.stats.consumer_seconds


class Doctor:
    """Watches a loader and its consumer from the start of a ``with`` block to its end; make one with `stoker.doctor`.

    From the start of the block one thread reads the counters every 8 ms and adds them up. However the block is left,
    the thread stops and the report is made; it is printed unless the doctor is ``quiet`` or there was an error.
    """

    def __init__(self, loader: Loader, *, quiet: bool) -> None:
        self._loader = loader
        self._quiet = quiet
        self._report: DoctorReport | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stoker-doctor", daemon=True)
        self._names: dict[int, str] = {}
        self._slept = self._held = 0.0
        self._since: float | None = None  # when the first batch was taken
        self._base: _State | None = None  # start of what is counted, which ends with `_last`
        self._first_times: Times | None = None
        self._last_times: Times | None = None

    @property
    def report(self) -> DoctorReport:
        """The report; raises `ConfigError` before the end of the ``with`` block."""
        if self._report is None:
            raise ConfigError("there is no report before the end of the with block of stoker.doctor")
        return self._report

    def __enter__(self) -> Self:
        if self._thread.ident is not None:
            raise ConfigError("this stoker.doctor was used already; make one for each with block")
        self._files = look_at_files(self._loader.dataset)
        self._loop_thread = threading.get_native_id()
        self._last = self._state()
        self._dropped = self._last.stats.batches + self._loader.settings.prefetch + 1
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._count()
        after = look_at_files(self._loader.dataset).cached_before
        self._report = decide(self._evidence(dataclasses.replace(self._files, cached_after=after)))
        if not self._quiet and (kind is None or not issubclass(kind, Exception)):
            sys.stderr.write("".join(f"stoker doctor: {line}\n" for line in self._report.lines()))
            sys.stderr.flush()

    def _run(self) -> None:
        own = threading.get_native_id()
        queued = scheduled(own).queued
        while not self._stopping.is_set():
            began = time.perf_counter()
            time.sleep(_SLEEP_SECONDS)  # not Event.wait, which takes locks of its own
            late = time.perf_counter() - began - _SLEEP_SECONDS
            before, queued = queued, scheduled(own).queued
            self._slept += late + _SLEEP_SECONDS
            if late - (queued - before) > _LATE_SECONDS:
                self._held += late + _SLEEP_SECONDS
            self._count()

    def _state(self) -> _State:
        return _State(time.perf_counter(), self._loader.stats(), scheduled(self._loop_thread), self._slept, self._held)

    def _count(self) -> None:
        now, last = self._state(), self._last
        if now.stats.batches == last.stats.batches:
            return
        self._last = now
        if self._base is None:
            self._since = self._since or now.at
            if now.stats.batches > self._dropped or now.at - self._since > _WARM_UP_SECONDS:
                self._base = now
                self._read_system()
            return
        between = now - last
        if between.at - between.loop_seconds > _GAP_SECONDS + _GAP_SHARE * between.at:
            self._base -= last - now  # so that the time between these two is not counted
        if self._last_times is None or now.at - self._last_times.wall > _SYSTEM_SECONDS:
            self._read_system()

    def _read_system(self) -> None:
        self._names |= {thread.native_id or 0: thread.name for thread in threading.enumerate()}
        self._last_times = read_times()
        self._first_times = self._first_times or self._last_times

    def _evidence(self, files: Files) -> Evidence:
        setup = _setup(self._loader)
        seen = self._last - (self._base or self._last)
        stats, seconds = seen.stats, seen.loop_seconds
        if seconds <= 0:
            return Evidence(files, setup)
        process, others, queued, threads = self._system_usage()
        busy = stats.busy_seconds
        shares = {name: _share(stage.seconds, busy) for name, stage in stats.stages.items()}
        # If the system does not say how long threads were on a CPU: all their busy time except reading.
        running = busy * (1 - shares["read"] - shares["remote"]) if stats.cpu_seconds is None else stats.cpu_seconds
        return Evidence(
            files,
            setup,
            seconds=seconds,
            batches=stats.batches,
            samples=stats.samples,
            wait_share=_share(stats.wait_seconds - stats.gil_seconds, seconds),
            gil_share=_share(stats.gil_seconds, seconds),
            consumer_share=_share(stats.consumer_seconds, seconds),
            busy_share=_share(busy, busy + stats.idle_seconds),
            cpu_share=_share(running, busy),
            queue_share=_share(queued * seconds, busy),
            stages=shares,
            pillow_share=_share(stats.stages["convert"].count, stats.samples),
            bytes_per_second=stats.bytes_read / seconds,
            process_cpus=process,
            other_cpus=others,
            gil_held_share=_share(seen.held, seen.slept),
            consumer=_consumer(seen),
            threads=threads,
        )

    def _system_usage(self) -> tuple[float, float | None, float, tuple[OtherThread, ...]]:
        """Return how many CPUs this process and others used and its decoding threads lacked, and its other threads."""
        first, last = self._first_times, self._last_times
        if first is None or last is None or last.wall <= first.wall:
            return 0.0, None, 0.0, ()
        seconds = last.wall - first.wall
        process = (last.process - first.process) / seconds
        others = None
        if first.machine is not None and last.machine is not None and not limited_by_quota():
            others = max(0.0, (last.machine - first.machine) / seconds - process)
        queued, threads = 0.0, []
        for number, after in last.threads.items():
            seen = after - first.threads.get(number, ThreadTime())
            name = self._names.get(number)
            if name is None:  # not a thread of Python
                queued += seen.queued
            elif number != self._loop_thread and not name.startswith(_OWN_THREADS):
                threads.append(OtherThread(name, _share(seen.running + seen.queued, seconds)))
        threads.sort(key=lambda thread: -thread.busy_share)
        return process, others, queued / seconds, tuple(threads)


def _consumer(seen: _State) -> Consumer:
    seconds = seen.stats.consumer_seconds
    cpu_share = _share(seen.loop.running, seconds)
    # A thread that wakes after waiting for a batch queues for a CPU, too, as often as between batches.
    queue_share = min(1 - cpu_share, _share(seen.loop.queued, seen.loop_seconds))
    # A thread that waits for the GIL wakes after each switch interval to ask for it again.
    most = _share(seen.loop.turns * sys.getswitchinterval(), seconds)
    return Consumer(cpu_share, queue_share, min(1 - cpu_share - queue_share, most))


def _setup(loader: Loader) -> Setup:
    settings, feed = loader.settings, loader.feed
    shuffle = settings.shuffle
    share = cpu_share()
    return Setup(
        threads=feed.threads,
        cpus=share.threads,
        local_ranks=share.local_ranks,
        decode=settings.decode,
        shuffle="block" if isinstance(shuffle, BlockShuffle) else "full" if shuffle else "none",
        cached=settings.cache is not None,
        connections=feed.read_ahead.connections,
        ahead_bytes=feed.read_ahead.budget_bytes,
        batch_size=settings.batch_size,
        accelerator=uses_accelerator(),
        missing=missing_libraries(),
    )


def _share(part: float, whole: float) -> float:
    return min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0


# What the system reports of threads, CPUs, memory and files; a missing report is not an error.

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
    machine: float | None  # of all programs, on the CPUs that this process may use; None if the system does not say
    threads: Mapping[int, ThreadTime] = field(default_factory=dict)  # of each thread, by its number in the system


def read_times() -> Times:
    """Return the times of the process, of its threads and of the machine."""
    tasks = [int(task.name) for task in _TASKS.iterdir()] if _TASKS.is_dir() else []
    threads = {task: thread_time for task in tasks if (thread_time := scheduled(task)).turns}
    return Times(time.perf_counter(), time.process_time(), _machine_seconds(), threads)


def scheduled(thread: int) -> ThreadTime:
    """Return the times of a thread, by its number in the system; zeros where the system does not say."""
    try:
        running, queued, turns = (_TASKS / str(thread) / "schedstat").read_bytes().split()[:3]
        return ThreadTime(int(running) / 1e9, int(queued) / 1e9, int(turns))
    except (OSError, ValueError):  # the thread has ended, or this kernel does not count
        return ThreadTime()


def limited_by_quota() -> bool:
    """Return whether a quota gives this process less time than its CPUs have, even if they are idle."""
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
    """Return whether PyTorch runs on a GPU in this process: a thread that waits for a GPU keeps a CPU busy."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda is not None and bool(cuda.is_initialized())


def look_at_files(dataset: Dataset | Mix) -> Files:
    """Return where a dataset lies, with the share of it that is in the page cache now as ``cached_before``."""
    parts = parts_of(dataset)
    name = ", ".join(part.path for part in parts)
    loose = not any(part.shards for part in parts)
    pixels = all(part.schema.image_encoding == "raw" for part in parts)
    if any(part.remote is not None for part in parts):
        return Files(name=name, remote=True, loose=loose, pixels=pixels)
    return Files(
        name=name,
        size_bytes=sum(part.size_bytes for part in parts),
        memory_bytes=_available_memory(),
        cached_before=_cached_share([path for part in parts for path in files_of(part, _MOST_FILES)]),
        is_directory=len(parts) == 1 and Path(name).is_dir(),
        loose=loose,
        pixels=pixels,
    )


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

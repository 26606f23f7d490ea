"""A diagnosis around somebody's own training loop."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

from stoker.config import available_cpus, check_range
from stoker.diagnosis.adapters import loader_of
from stoker.diagnosis.decision import decide
from stoker.diagnosis.evidence import Consumer, Evidence, Setup
from stoker.diagnosis.files import cached_now, look_at_files
from stoker.diagnosis.report import DoctorReport
from stoker.diagnosis.sampling import Sampler
from stoker.diagnosis.system import limited_by_quota
from stoker.diagnosis.watching import Watch
from stoker.errors import ConfigError
from stoker.order import BlockShuffle

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from stoker.diagnosis.evidence import Files
    from stoker.diagnosis.system import Times
    from stoker.feed import Loader, LoaderStats


class Doctor:
    """Watches a loader and its consumer from the start of a ``with`` block to its end; make one with `stoker.doctor`.

    Entering starts one thread, which looks every 8 ms; leaving stops it, and makes and prints the report. The loop may
    be left by `break`, by the end of its epochs, by Ctrl-C or by an error; the report is made in every case, and
    printed unless there was an error.

    Args:
        loader: The loader.
        replay: Batches handed out again.
        quiet: Whether nothing is printed.
    """

    def __init__(self, loader: Loader, *, replay: int, quiet: bool) -> None:
        self._loader = loader
        self._quiet = quiet
        self._watch = Watch(loader, replay, loader.settings.spare_buffers - 1)
        self._sampler = Sampler(self._watch)
        self._report: DoctorReport | None = None
        self._given: Any = None

    @property
    def report(self) -> DoctorReport:
        """What was found.

        Raises:
            ConfigError: The ``with`` block is not over.
        """
        if self._report is None:
            raise ConfigError("there is no report before the end of the with block of stoker.doctor")
        return self._report

    def __enter__(self) -> Self:
        watcher = getattr(self._loader.handing_out, "__self__", None)  # of a method
        if self._given is not None or isinstance(watcher, Watch):
            raise ConfigError("this loader is being watched already; one stoker.doctor at a time, each used once")
        self._files = look_at_files(self._loader.dataset)
        self._given, self._loader.handing_out = self._loader.handing_out, self._watch.hand_out
        self._sampler.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loader.handing_out = self._given
        self._sampler.stop()
        files = dataclasses.replace(self._files, cached_after=cached_now(self._loader.dataset))
        evidence = self._evidence(files, _setup(self._loader))
        decision = decide(evidence)
        self._report = DoctorReport(decision.verdict, decision.sentence, decision.remedy, evidence)
        if not self._quiet and (kind is None or not issubclass(kind, Exception)):
            sys.stderr.write("".join(f"stoker doctor: {line}\n" for line in self._report.lines()))
            sys.stderr.flush()

    def _evidence(self, files: Files, setup: Setup) -> Evidence:
        stretches = [stretch for stretch in self._watch.stretches if stretch.batches]
        if not stretches:
            return _nothing(files, setup)
        stats = [stretch.last - stretch.first for stretch in stretches]
        seconds = sum(stretch.seconds for stretch in stretches)
        working = sum(stretch.consumer for stretch in stretches)
        waiting = min(_waiting(stats), seconds - working)
        busy, idle = sum(one.busy_seconds for one in stats), sum(one.idle_seconds for one in stats)
        process, others, queued = _of_the_system(self._sampler)
        return Evidence(
            seconds=seconds,
            batches=sum(stretch.batches for stretch in stretches),
            samples=sum(stretch.samples for stretch in stretches),
            wait_share=waiting / seconds,
            gil_share=(seconds - working - waiting) / seconds,
            consumer_share=working / seconds,
            busy_share=_part(busy, busy + idle),
            cpu_share=_cpu_share(stats, busy),
            queue_share=_part(queued * seconds, busy),
            stages=_stages(stats, busy),
            bytes_per_second=sum(one.bytes_read for one in stats) / seconds,
            process_cpus=process,
            other_cpus=others,
            gil_held_share=self._sampler.gil_held_share,
            consumer=self._consumer(_part(sum(stretch.cpu for stretch in stretches), working)),
            threads=self._sampler.others(),
            files=files,
            setup=setup,
        )

    def _consumer(self, cpu_share: float) -> Consumer:
        sampler = self._sampler
        queue_share = min(1.0, sampler.queue_share)
        return Consumer(cpu_share, queue_share, sampler.works, sampler.spots, self._watch.top_speed)


def doctor(loader: Any, *, replay: int = 8, quiet: bool = False) -> Doctor:
    """Find out why a training loop is as slow as it is, while it runs.

    ::

        with stoker.doctor(loader) as doctor:
            train(loader)
        doctor.report.verdict, doctor.report.remedy

    The first batches are not counted. Once enough were, the loader hands out ``replay`` batches **again**, without
    waiting for anything, to see how fast the loop is by itself: in a diagnosis, it makes that many steps more, on
    images that it had before. Where the loader is, and what comes after, does not change. With several ranks nothing is
    handed out again: a rank that makes more steps than the others would wait for them in a collective for ever.

    Args:
        loader: A `stoker.Loader`, `stoker.torch.DataLoader`, or anything else with a `stoker.Loader` as ``loader``.
        replay: How many batches are handed out again, once; 0 for none, as always with several ranks.
        quiet: Whether the report is left to be read, and not printed on standard error.

    Returns:
        A context manager; its ``report`` is a `DoctorReport` when the ``with`` block is over.

    Raises:
        ConfigError: It is no loader, or ``replay`` is out of range.
    """
    found = loader_of(loader)
    check_range("replay", replay, 0, 1000)
    if found.topology.world_size > 1:
        replay = 0  # each rank would hand out again at a time of its own, and all must make the same number of steps
    return Doctor(found, replay=replay, quiet=quiet)


def _setup(loader: Loader) -> Setup:
    settings = loader.settings
    shuffle = settings.shuffle
    return Setup(
        threads=settings.threads,
        cpus=available_cpus(),
        decode=settings.decode,
        shuffle="block" if isinstance(shuffle, BlockShuffle) else "full" if shuffle else "none",
        cached=settings.cache is not None,
        connections=settings.read_ahead.connections,
        ahead_bytes=settings.read_ahead.budget_bytes,
        batch_size=settings.batch_size,
    )


def _part(some: float, whole: float) -> float:
    return min(1.0, max(0.0, some / whole)) if whole > 0 else 0.0


def _stages(stats: list[LoaderStats], busy: float) -> dict[str, float]:
    return {name: _part(sum(one.stages[name].seconds for one in stats), busy) for name in stats[0].stages}


def _waiting(stats: list[LoaderStats]) -> float:
    # Asking for a batch takes the interpreter's lock several times: all other time until it is there is that lock's.
    return sum(one.wait_seconds - one.gil_seconds for one in stats)


def _cpu_share(stats: list[LoaderStats], busy: float) -> float:
    """Return the share of the decoding threads' busy time on a CPU; where nobody tells, all but their reading."""
    used = [one.cpu_seconds for one in stats]
    if None in used:
        shares = _stages(stats, busy)
        return max(0.0, 1 - shares["read"] - shares["remote"])
    return _part(sum(seconds or 0.0 for seconds in used), busy)


def _of_the_system(sampler: Sampler) -> tuple[float, float | None, float]:
    """Return CPUs of this process and of others, and how much native threads queued for one."""
    first, last = sampler.first, sampler.last
    if first is None or last is None or last.wall <= first.wall:
        return 0.0, None, 0.0
    seconds = last.wall - first.wall
    process = (last.process - first.process) / seconds
    others = None
    if first.machine is not None and last.machine is not None and not limited_by_quota():
        others = max(0.0, (last.machine - first.machine) / seconds - process)
    native = set(last.threads) - sampler.python_threads()
    queued = sum(_queue(first, last, number) for number in native)
    return process, others, queued / seconds


def _queue(first: Times, last: Times, number: int) -> float:
    return last.threads.get(number, (0.0, 0.0))[1] - first.threads.get(number, (0.0, 0.0))[1]


def _nothing(files: Files, setup: Setup) -> Evidence:
    return Evidence(0.0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, {}, 0.0, 0.0, None, 0.0, Consumer(), (), files, setup)

"""The benchmark: cases take turns on the same images; medians and spreads are reported.

What is timed: reading, decoding, cropping, resizing and batching of images, nothing else. Each case runs in a process
of its own, is warmed up first, and is measured for the same time in every round. Files come from the page cache after
the warm-up, or, with ``cold``, from the disk: they are dropped from the page cache before every measurement, which is
then one pass over them at most.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stoker.config import available_cpus, check_range, check_seconds, format_seconds, format_size
from stoker.inspect.bench.cases import LIMIT, Task, chosen_cases, objection
from stoker.inspect.bench.images import files_read_by, prepare
from stoker.inspect.bench.turns import Program, ProgramFailed, take_turns
from stoker.loader import open_main_split
from stoker.storage import location, require_cold

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from stoker.inspect.bench.cases import Case, Group, OwnForm, TransformName
    from stoker.inspect.bench.images import Prepared
    from stoker.loader import Dataset
    from stoker.types import Progress

_MOST_OF_MEMORY = 0.5


@dataclass(frozen=True, slots=True)
class BenchSpec:
    """What to measure.

    Attributes:
        dataset: Anything that `stoker.open` opens: images of any kind, a dataset, TFRecords of other origin.
        split: Its split; None: the only one, or ``train``.
        transform: ``train``, ``eval`` or ``objects``; see `stoker.inspect.bench.Task`.
        batch_size: Images per batch.
        threads: Threads of each case; None: one per CPU.
        seconds: Time per case and round.
        rounds: Turns of each case.
        cold: Whether a case's files are dropped from the page cache before every measurement.
        images: The most images that are taken of the dataset; None: 1000, and fewer where they are large.
        only: Keys of the cases to measure, see `stoker.inspect.bench.CASES`; empty: all.

    Raises:
        ConfigError: A number is out of its range.
    """

    dataset: str
    split: str | None = None
    transform: TransformName = "train"
    batch_size: int = 64
    threads: int | None = None
    seconds: float = 1.0
    rounds: int = 3
    cold: bool = False
    images: int | None = None
    only: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_range("rounds", self.rounds, 1, 1000)
        check_range("batch_size", self.batch_size, 1, 2**16)
        check_seconds("seconds", self.seconds, 0.1, 3600)
        if self.threads is not None:
            check_range("threads", self.threads, 1, 4096)
        if self.images is not None:
            check_range("images", self.images, 1, 2**31)


@dataclass(frozen=True, slots=True)
class Machine:
    """What the figures were measured on.

    Attributes:
        processor: Name of the CPU.
        cpus: CPUs this process may use.
        memory_bytes: Physical memory; 0 if unknown.
        system: Operating system and its version.
        python: Version of Python.
    """

    processor: str
    cpus: int
    memory_bytes: int
    system: str
    python: str


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One case's figures.

    Attributes:
        name: The case, for a person.
        group: What kind of case it is.
        note: One sentence: what it does.
        images_per_second: One figure a round. With ``transform="objects"`` these are crops, not files.
        images_per_cpu_second: The same per second of CPU time.
        of_limit: Median over the rounds of its speed over the codec's in the same round; None where the codec alone
            was not measured.
        key: What ``--only`` calls it.
    """

    name: str
    group: Group
    note: str
    images_per_second: tuple[float, ...]
    images_per_cpu_second: tuple[float, ...]
    of_limit: float | None
    key: str

    @property
    def median(self) -> float:
        """Median images per second."""
        return statistics.median(self.images_per_second)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A case that was not measured.

    Attributes:
        key: What ``--only`` calls it.
        name: The case, for a person.
        group: What kind of case it would have been.
        reason: Why, in one sentence; of a package that is missing, how it is installed.
        failed: Whether it was to be measured, and failed.
    """

    key: str
    name: str
    group: Group
    reason: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class BenchReport:
    """All figures, the settings, and the machine.

    Attributes:
        task: The work that was measured.
        images: Images in the split.
        seconds: Time per case and round.
        rounds: Turns of each case.
        machine: What it ran on.
        rows: Figures of each case: the limit, the ladder from the bottom, Stoker.
        left_out: Cases without figures, and why.
        prepared: The images that all of them read.
        still_cached: Of cold figures, the largest share of the files that was still in the page cache when a
            measurement began, 0..1; None for warm ones.
    """

    task: Task
    images: int
    seconds: float
    rounds: int
    machine: Machine
    rows: tuple[BenchRow, ...]
    left_out: tuple[LeftOut, ...]
    prepared: Prepared
    still_cached: float | None = None

    @property
    def counted(self) -> str:
        """What the figures count: ``images`` or ``crops`` of them."""
        return "crops" if self.task.transform == "objects" else "images"

    @property
    def files_per_sample(self) -> float:
        """Image files for each image or crop that is counted."""
        return self.prepared.images / self.prepared.samples if self.counted == "crops" else 1.0

    @property
    def page_cache(self) -> str:
        """Whether files were in the page cache, for a person."""
        if self.still_cached is None:
            return "warm"
        return f"cold (files dropped before each turn; at most {self.still_cached:.1%} of them left in memory)"


class BenchProgress:
    """How far a benchmark is: shows nothing. Derive from it to show what the calling thread passes."""

    def phase(self, verb: str) -> AbstractContextManager[Progress]:  # noqa: ARG002 - for those that derive from it
        """Return what shows a part of the preparation while it runs."""
        return nullcontext(_ignore)

    def line(self, text: str) -> None:
        """Show a line that stays."""

    def step(self, text: str) -> None:
        """Show what is done now; the next step takes its place."""


def _ignore(*, done: int, total: int, size_bytes: int, rejects: int) -> None:
    pass


def run_bench(spec: BenchSpec, progress: BenchProgress | None = None) -> BenchReport:
    """Measure every way to read the user's images that applies and is installed.

    A case that fails is reported as left out, with the last line it printed; the others are measured.

    Args:
        spec: What to measure.
        progress: Shows how far it is.

    Raises:
        ConfigError: A setting is wrong; no image can be read; or cold figures cannot be had, not on this system or not
            where these files are.
        DatasetNotFoundError: There is no such dataset.
        DestinationError: The temporary folder has too little space.
        OSError: It cannot be written, or the store does not answer any more.
    """
    cases = chosen_cases(spec.only)
    # Absolute, with its symbolic links.
    path = str(location(spec.dataset).normalized())
    dataset = open_main_split(path, spec.split)
    with tempfile.TemporaryDirectory(prefix="stoker-bench-", ignore_cleanup_errors=True) as data:
        threads = available_cpus() if spec.threads is None else spec.threads
        task = Task(path, dataset.split, spec.transform, spec.batch_size, threads, spec.cold, data)
        return _Bench(spec, dataset, task, progress or BenchProgress()).run(cases)


def describe_machine() -> Machine:
    """Return what this process runs on."""
    known = "SC_PHYS_PAGES" in os.sysconf_names
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return Machine(
        processor=models[0] if models else platform.processor() or platform.machine(),
        cpus=available_cpus(),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if known else 0,
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
    )


class _Bench:
    """One benchmark in its temporary folder."""

    def __init__(self, spec: BenchSpec, dataset: Dataset, task: Task, progress: BenchProgress) -> None:
        self._spec, self._dataset, self._task, self._progress = spec, dataset, task, progress
        self._machine = describe_machine()
        self._left_out: list[LeftOut] = []
        self._answers: dict[str, list[dict[str, Any]]] = {}

    def run(self, chosen: Sequence[Case]) -> BenchReport:
        """Prepare what the chosen cases need, measure those that apply, and report."""
        spec, task = self._spec, self._task
        cases = self._without(chosen, self._objection)
        forms = frozenset(case.needs for case in cases)
        caches_file = any(case.key == "cache-file" for case in cases)
        prepared = prepare(self._dataset, task, spec.images, forms, self._progress.phase, caches_file=caches_file)
        cases = self._without(cases, lambda case: self._lacks_memory(case, prepared))
        if spec.cold:
            require_cold(sorted({path for case in cases for path in files_read_by(case, task)}))
        least = spec.rounds * spec.seconds * len(cases)
        self._progress.line(
            f"prepared {prepared.images} images in {format_seconds(prepared.seconds)}, "
            f"wrote {format_size(prepared.written_bytes)}; "
            f"starting {len(cases)} cases, and then measuring for at least {format_seconds(least)}"
        )
        self._measure(cases)
        measured = [case for case in cases if case.key in self._answers]
        cached = [answer["still_cached"] for answers in self._answers.values() for answer in answers]
        return BenchReport(
            task=task,
            images=len(self._dataset),
            seconds=spec.seconds,
            rounds=spec.rounds,
            machine=self._machine,
            rows=tuple(map(self._row, measured)),
            left_out=tuple(self._left_out),
            prepared=prepared,
            still_cached=max(cached, default=0.0) if task.cold else None,
        )

    def _objection(self, case: Case) -> str:
        """Why a case does not apply to the user's data; empty if it does."""
        dataset = self._dataset
        own: OwnForm = "raw" if dataset.schema.image_encoding == "raw" else "plain"
        if not dataset.shards:
            own = "files"
        elif any(shard.inflated is not None for shard in dataset.shards):
            own = "compressed"
        return objection(case, self._task, own, has_boxes=dataset.has_boxes)

    def _without(self, cases: Sequence[Case], objection: Callable[[Case], str]) -> list[Case]:
        """Return the cases without an objection, and note the others with theirs."""
        reasons = {case.key: objection(case) for case in cases}
        self._left_out += [
            LeftOut(case.key, case.name, case.group, reasons[case.key]) for case in cases if reasons[case.key]
        ]
        return [case for case in cases if not reasons[case.key]]

    def _lacks_memory(self, case: Case, prepared: Prepared) -> str:
        most = _MOST_OF_MEMORY * self._machine.memory_bytes
        if not case.holds or not most or prepared.decoded_bytes <= most:
            return ""
        size = format_size(prepared.decoded_bytes)
        return f"the decoded images take {size}, more than half of this machine's memory; take fewer --images"

    def _measure(self, cases: Sequence[Case]) -> None:
        """Start all cases, have them take their turns, and end them, whatever happens."""
        by_key = {case.key: case for case in cases}
        turns = self._spec.rounds * len(cases)
        with ExitStack() as stack:
            programs = self._start(cases, stack)
            began, done = time.monotonic(), 0

            def turn(key: str) -> None:
                nonlocal done
                seconds = (time.monotonic() - began) / done * (turns - done) if done else 0.0
                left = f", {format_seconds(seconds)} left" if done else ""
                self._progress.step(f"measuring: turn {done + 1} of {turns}{left}: {by_key[key].name}")
                done += 1
                self._answers.setdefault(key, []).append(programs[key].take_turn(self._spec.seconds))

            take_turns(list(programs), self._spec.rounds, turn, lambda key, why: self._fail(by_key[key], why))

    def _start(self, cases: Sequence[Case], stack: ExitStack) -> dict[str, Program]:
        """Start as many at a time as there are CPUs; return those that are ready."""
        work = json.dumps(asdict(self._task))
        variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        started: list[Program] = []
        ready: dict[str, Program] = {}
        for number, case in enumerate(cases):
            for one in cases[len(started) : number + available_cpus()]:
                words = ["-P", "-m", "stoker.inspect.bench.reading", one.key, work, str(self._spec.seconds)]
                log = tempfile.TemporaryFile()  # noqa: SIM115 - the program closes it
                started.append(stack.enter_context(Program([sys.executable, *words], log, variables)))
            self._progress.step(f"starting: {number + 1} of {len(cases)}: {case.name}")
            try:
                started[number].wait_until_ready()
            except ProgramFailed as failure:
                self._fail(case, failure)
            else:
                ready[case.key] = started[number]
        return ready

    def _fail(self, case: Case, failure: ProgramFailed) -> None:
        self._answers.pop(case.key, None)
        self._left_out.append(LeftOut(case.key, case.name, case.group, f"failed: {failure}", failed=True))

    def _row(self, case: Case) -> BenchRow:
        rates, limits = self._rates(case.key, "seconds"), self._rates(LIMIT.key, "seconds")
        of_limit = (
            statistics.median(rate / limit for rate, limit in zip(rates, limits, strict=True)) if limits else None
        )
        cpu = self._rates(case.key, "cpu_seconds")
        return BenchRow(case.name, case.group, case.note, rates, cpu, of_limit, case.key)

    def _rates(self, key: str, per: str) -> tuple[float, ...]:
        """Images per second of ``seconds`` or ``cpu_seconds``, one for each turn."""
        answers = self._answers.get(key, [])
        return tuple(answer["images"] / max(answer[per], 1e-9) for answer in answers)

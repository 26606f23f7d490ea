"""How fast images come: the ladder of ways to read them, Stoker's own ways, and the codec's limit.

The ladder goes from the simplest way upwards, each case one step more than the one before. ``make bench`` adds the
steps of tf.data, ``make bench-rivals`` compares other libraries.

What is timed: reading, decoding, cropping, resizing and batching of images, nothing else. Cases take turns on the same
images; medians and spreads are reported. Each case runs in a process of its own, is warmed up first, and is measured
for the same time in every round. Files come from the page cache after the warm-up, or, with ``cold``, from the disk:
they are dropped from the page cache before every measurement, which is then one pass over them at most.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import statistics
import sys
import tempfile
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stoker import _native
from stoker.config import available_cpus, check_range, check_seconds, format_size
from stoker.inspect.bench_cases import LIMIT, objection, prepare
from stoker.inspect.measuring import (
    Meter,
    Program,
    ProgramFailed,
    endless,
    in_turns,
    loader_alone,
    median_ratio,
    require_cold,
)
from stoker.loader import loader_settings, open_main_split
from stoker.storage import location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stoker.inspect.bench_cases import BenchImages, BenchSpec, Case, Group, Phase

    OnTurn = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Machine:
    """What the figures were measured on."""

    processor: str  # name of the CPU
    cpus: int  # CPUs this process may use
    memory_bytes: int  # physical memory; 0 if unknown
    system: str  # operating system and its version
    python: str
    kernels: str  # level of the core's kernels: "portable", "sse42", "avx2", "avx512" or "neon"


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One case's figures."""

    key: str  # what ``--only`` calls it
    name: str  # the case, for a person
    group: Group  # what kind of case it is
    note: str  # one sentence: what it does
    images_per_second: tuple[float, ...]  # one figure a round
    images_per_cpu_second: tuple[float, ...]  # the same per second of CPU time
    # median over the rounds of its speed over the codec's in the same round; None where the codec alone was not
    # measured
    of_limit: float | None

    @property
    def median(self) -> float:
        """Median images per second."""
        return statistics.median(self.images_per_second)

    @property
    def median_per_cpu(self) -> float:
        """Median images per second of CPU time."""
        return statistics.median(self.images_per_cpu_second)


@dataclass(frozen=True, slots=True)
class BenchReport:
    """All figures, the settings, and the machine."""

    spec: BenchSpec  # what was measured, with the split and the threads that were used
    machine: Machine  # what it ran on
    images: int  # images in the split
    images_read: int  # images that every case reads
    encoded_bytes: int  # bytes of these as files
    decoded_bytes: int  # bytes of their pixels
    formats: Mapping[str, int]  # how many of these files have which format
    own_formats: Mapping[str, int]  # the same of the user's data, as `stoker.Sample.format` says
    unreadable: Sequence[str]  # why images were left out, for all cases: a reason for each
    rows: tuple[BenchRow, ...]  # figures of each case: the limit, the ladder from the bottom, Stoker
    left_out: dict[str, str]  # why other cases do not apply, by key
    failed: dict[str, str]  # the last line that cases printed which were to be measured and failed, by key
    # of cold figures, the largest share of the files that was still in the page cache when a measurement began, 0..1;
    # None for warm ones
    still_cached: float | None = None

    @property
    def page_cache(self) -> str:
        """Whether files were in the page cache, for a person."""
        if self.still_cached is None:
            return "warm"
        return f"cold (files dropped before each turn; at most {self.still_cached:.1%} of them left in memory)"


def run_bench(
    spec: BenchSpec,
    phase: Phase | None = None,
    on_turn: OnTurn = lambda *_: None,
    cases: Sequence[Case] | None = None,
) -> BenchReport:
    """Measure every way to read the user's images that applies and is installed.

    A case that fails is reported with the last line it printed; the others are measured. ``phase`` is called with what
    is done, what is counted, and what those are called that are counted apart, and returns a context with what shows
    the progress of that part. ``on_turn`` is called after each turn with the key of its case and images a second.
    ``cases`` are those to measure, if they apply; by default those that the settings choose.
    """
    phase = phase or (lambda *_: nullcontext(lambda **_: None))
    dataset = open_main_split(str(location(spec.dataset).normalized()), spec.split, spec.keys, source=spec.source)
    cases = spec.chosen if cases is None else cases
    left_out = {case.key: reason for case in cases if (reason := objection(case, spec, dataset))}
    cases = [case for case in cases if case.key not in left_out]
    machine = describe_machine()
    with tempfile.TemporaryDirectory(prefix="stoker-bench-", ignore_cleanup_errors=True) as folder:
        images = prepare(dataset, spec, folder, frozenset(case.needs for case in cases), phase)
        if 0 < machine.memory_bytes < 2 * images.decoded_bytes:
            size = format_size(images.decoded_bytes)
            why = f"the decoded images take {size}, more than half of this machine's memory; take fewer --images"
            left_out |= {case.key: why for case in cases if case.keeps == "memory"}
            cases = [case for case in cases if case.key not in left_out]
        if spec.cold:
            require_cold(sorted({path for case in cases for path in images.files_read_by(case)}))
        answers, failed = _measure(cases, images, phase, on_turn)
    cached = [answer["still_cached"] for turns in answers.values() for answer in turns if spec.cold]
    return BenchReport(
        spec=images.spec,
        machine=machine,
        images=len(dataset),
        images_read=len(images.numbers),
        encoded_bytes=images.encoded_bytes,
        decoded_bytes=images.decoded_bytes,
        formats=images.formats,
        own_formats=images.own_formats,
        unreadable=images.unreadable,
        rows=tuple(_rows(cases, answers)),
        left_out=left_out,
        failed=failed,
        still_cached=max(cached, default=0.0) if spec.cold else None,
    )


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
        kernels=_native.kernel_level(),
    )


def _measure(
    cases: Sequence[Case], images: BenchImages, phase: Phase, on_turn: OnTurn
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, str]]:
    """Start all cases, have them take their turns, and end them, whatever happens.

    Returns:
        The answers of each case, one a round, and why other cases failed.
    """
    failed: dict[str, str] = {}
    with ExitStack() as stack:
        variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        words = [sys.executable, "-P", "-m", "stoker.inspect.bench_reading"]
        started: list[Program] = []
        with phase("starting", "cases", "failed") as progress:
            for number, case in enumerate(cases):
                progress(done=number, total=len(cases), size_bytes=0, rejects=len(failed))
                for starting in cases[len(started) : number + available_cpus()]:
                    log = tempfile.TemporaryFile()  # noqa: SIM115 - the program closes it
                    command = [*words, json.dumps(asdict(starting)), images.folder]
                    started.append(stack.enter_context(Program(command, log, variables)))
                try:
                    started[number].wait_until_ready()
                except ProgramFailed as failure:
                    failed[case.key] = str(failure)
                progress(done=number + 1, total=len(cases), size_bytes=0, rejects=len(failed))
        programs = {case.key: program for case, program in zip(cases, started, strict=True) if case.key not in failed}
        turns = itertools.count(1)
        with phase("measuring", "turns", "failed") as progress:

            def turn(key: str, seconds: float) -> dict[str, Any]:
                answer = programs[key].take_turn(seconds)
                on_turn(key, answer["images"] / max(answer["seconds"], 1e-9))
                progress(done=next(turns), total=images.spec.rounds * len(programs), size_bytes=0, rejects=len(failed))
                return answer

            answers = in_turns(
                {key: partial(turn, key) for key in programs},
                images.spec.rounds,
                images.spec.seconds,
                failed=lambda key, why: failed.update({key: str(why)}),
            )
    return answers, failed


def _rows(cases: Sequence[Case], answers: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[BenchRow]:
    def rates(key: str, per: str) -> tuple[float, ...]:
        return tuple(answer["images"] / max(answer[per], 1e-9) for answer in answers.get(key, []))

    limits = rates(LIMIT.key, "seconds")
    for case in cases:
        if case.key in answers:
            speeds = rates(case.key, "seconds")
            yield BenchRow(
                key=case.key,
                name=case.name,
                group=case.group,
                note=case.note,
                images_per_second=speeds,
                images_per_cpu_second=rates(case.key, "cpu_seconds"),
                of_limit=median_ratio(speeds, limits) if limits else None,
            )


# The loader that a configuration file describes: one figure, and nothing to compare it with.


@dataclass(frozen=True, slots=True)
class LoaderSpeed:
    """How fast batches come with the settings of a configuration file."""

    dataset: str
    split: str  # the split that was read
    images_per_second: float  # median over the rounds; images that leave the loader, so each cut-out object is one
    lowest: float  # the slowest round
    highest: float  # the fastest round
    batch_size: int
    shape: tuple[int, ...]  # height, width and channels of each
    threads: int  # threads that read and decode
    prefetch: int | None  # batches made ahead of the consumer; None: as many as a loader makes by default


def measure_configured(
    path: str | os.PathLike[str],
    split: str | None = None,
    *,
    batch_size: int | None = None,
    threads: int | None = None,
    seconds: float = 1.0,
    rounds: int = 3,
) -> LoaderSpeed:
    """Read with the loader that a configuration file describes, on this machine, and time it.

    Images that cannot be decoded are replaced by others. ``path`` is an ``ilsvrc.json``, see `stoker.loader_settings`;
    ``batch_size`` and ``threads`` are taken instead of the file's. Before the rounds there is a warm-up as long as one,
    a second at most.
    """
    check_seconds(seconds)
    check_range("--rounds", rounds, 1, 1000)
    settings = loader_settings(path)
    settings |= {} if batch_size is None else {"batch_size": batch_size}
    settings |= {} if threads is None else {"threads": threads}
    dataset = open_main_split(path, split)
    with loader_alone(dataset, **settings) as loader:
        batches = endless(loader)
        shape = next(batches).images.shape[1:]
        meter = Meter(map(len, batches))
        meter.warm_up(seconds)
        speeds = [meter.rate(seconds) for _ in range(rounds)]
        used = loader.stats().threads
    return LoaderSpeed(
        dataset=str(path),
        split=dataset.split,
        images_per_second=statistics.median(speeds),
        lowest=min(speeds),
        highest=max(speeds),
        batch_size=settings["batch_size"],
        shape=shape,
        threads=used,
        prefetch=settings.get("prefetch"),
    )

"""The benchmark: contenders take turns on the same work, several rounds; medians and spreads are reported.

What is timed: reading, decoding, cropping, resizing and batching of images, nothing else. Each contender runs in a
process of its own, is warmed up first, and is measured for the same time in every round, so that a machine whose speed
drifts does not favour one of them. Files come from the page cache after the warm-up, or, with ``cold``, from the disk:
the shards are dropped from the page cache before every measurement, so its first pass over them is cold.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stoker.config import available_cpus, check_range
from stoker.errors import StokerError
from stoker.feed.opening import open_main_split
from stoker.measure.comparable import refuse_incomparable
from stoker.measure.machine import Machine, describe_machine
from stoker.measure.task import Task, ViewName
from stoker.storage.page_cache import require_cold

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    OnTurn = Callable[[int, int, str], None]

# Module of the contender -> (name in the table, package it needs).
_CONTENDERS = {
    "codec": ("codec alone (the limit)", "stoker"),
    "loader": ("stoker.Loader, exact pixels", "stoker"),
    "tf_data": ("tf.data, tuned, fast DCT", "tensorflow"),
    "torch_workers": ("torch DataLoader + Pillow", "torch"),
    "pillow": ("Pillow in threads", "PIL"),
}
LIMIT = "codec"


@dataclass(frozen=True, slots=True)
class BenchSpec:
    """What to measure.

    Attributes:
        dataset: Path of a dataset.
        split: Its split; None: the only one, or ``train``.
        view: ``train`` or ``eval``; see `stoker.measure.task.Task`.
        batch_size: Images per batch.
        threads: Threads or worker processes of each contender; None: one per CPU.
        seconds: Time per contender and round.
        rounds: Turns each contender takes.
        cold: Whether the shards are dropped from the page cache before every measurement.
    """

    dataset: str
    split: str | None = None
    view: ViewName = "train"
    batch_size: int = 64
    threads: int | None = None
    seconds: float = 5.0
    rounds: int = 5
    cold: bool = False

    def __post_init__(self) -> None:
        check_range("rounds", self.rounds, 1, 1000)
        check_range("batch_size", self.batch_size, 1, 2**16)
        if self.threads is not None:
            check_range("threads", self.threads, 1, 4096)
        check_range("seconds", int(self.seconds * 1000), 100, 3_600_000)


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One contender's figures.

    Attributes:
        name: The contender.
        images_per_second: One figure a round.
        images_per_cpu_second: The same per second of CPU time; empty where the system cannot tell.
        of_limit: Median over the rounds of its speed over the codec's in the same round.
    """

    name: str
    images_per_second: tuple[float, ...]
    images_per_cpu_second: tuple[float, ...]
    of_limit: float

    @property
    def median(self) -> float:
        """Median images per second."""
        return statistics.median(self.images_per_second)


@dataclass(frozen=True, slots=True)
class BenchReport:
    """All figures, the settings, and the machine.

    Attributes:
        task: The work that was measured.
        images: Images in the split.
        seconds: Time per contender and round.
        rounds: Turns each contender took.
        machine: What it ran on.
        rows: Figures of each contender.
        absent: Contenders whose package is not installed.
        still_cached: Of cold figures, the largest share of the shards that was still in the page cache when a
            measurement began, 0..1; None for warm ones.
    """

    task: Task
    images: int
    seconds: float
    rounds: int
    machine: Machine
    rows: tuple[BenchRow, ...]
    absent: tuple[str, ...]
    still_cached: float | None = None


class _Contender:
    """A running contender."""

    def __init__(self, module: str, task: Task) -> None:
        self.module = module
        self.results: list[dict[str, Any]] = []
        self._process = subprocess.Popen(  # noqa: S603 - our own module under our own interpreter
            [sys.executable, "-m", "stoker.measure.runner", module, json.dumps(dataclasses.asdict(task))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
        )
        self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            _, trace = self._process.communicate()
            last = trace.strip().splitlines()[-1:] or ["it said nothing"]
            raise StokerError(f"the benchmark of {_CONTENDERS[self.module][0]} failed: {last[0]}")
        return line

    def take_turn(self, seconds: float) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        self.results.append(json.loads(self._answer()))

    def rates(self, per: str) -> tuple[float, ...]:
        return tuple(r["images"] / r[per] for r in self.results if r[per])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()


def run_bench(spec: BenchSpec, on_turn: OnTurn | None = None) -> BenchReport:
    """Measure every contender that is installed.

    Args:
        spec: What to measure.
        on_turn: Called before each turn with its number from 0, the number of turns, and the contender's name.

    Raises:
        StokerError: A contender failed; the message is its last line.
        ConfigError: The dataset is none that all contenders read; or cold figures cannot be had, not on this system or
            not where these files are.
        DatasetNotFoundError: There is no such dataset.
    """
    dataset = open_main_split(spec.dataset, spec.split)
    refuse_incomparable(dataset)
    threads = available_cpus() if spec.threads is None else spec.threads
    path = os.path.abspath(spec.dataset)  # noqa: PTH100 - as it is, with its symbolic links
    task = Task(path, dataset.split, spec.view, spec.batch_size, threads, spec.cold)
    if spec.cold:
        require_cold([shard.local_path for shard in dataset.shards])
    installed = [m for m, (_, package) in _CONTENDERS.items() if importlib.util.find_spec(package)]
    absent = tuple(name for m, (name, _) in _CONTENDERS.items() if m not in installed)
    with _Started(installed, task) as contenders:
        _play(contenders, spec, on_turn)
    limits = contenders[installed.index(LIMIT)].rates("seconds")
    return BenchReport(
        task=task,
        images=len(dataset),
        seconds=spec.seconds,
        rounds=spec.rounds,
        machine=describe_machine(),
        rows=tuple(_row(contender, limits) for contender in contenders),
        absent=absent,
        still_cached=_still_cached(contenders) if spec.cold else None,
    )


class _Started:
    """Contenders that are all started, and all ended whatever happens."""

    def __init__(self, modules: list[str], task: Task) -> None:
        self._modules, self._task = modules, task
        self._running: list[_Contender] = []

    def __enter__(self) -> list[_Contender]:
        try:
            for module in self._modules:
                self._running.append(_Contender(module, self._task))
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self._running

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for contender in self._running:
            contender.__exit__(kind, error, trace)


def _play(contenders: list[_Contender], spec: BenchSpec, on_turn: OnTurn | None) -> None:
    turns = [contender for _ in range(spec.rounds) for contender in contenders]
    for number, contender in enumerate(turns):
        if on_turn is not None:
            on_turn(number, len(turns), _CONTENDERS[contender.module][0])
        contender.take_turn(spec.seconds)


def _still_cached(contenders: list[_Contender]) -> float:
    return max(float(result["still_cached"]) for contender in contenders for result in contender.results)


def _row(contender: _Contender, limits: tuple[float, ...]) -> BenchRow:
    rates = contender.rates("seconds")
    shares = [rate / limit for rate, limit in zip(rates, limits, strict=True)]
    name = _CONTENDERS[contender.module][0]
    return BenchRow(name, rates, contender.rates("cpu_seconds"), statistics.median(shares))

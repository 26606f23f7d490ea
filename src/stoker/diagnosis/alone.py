"""A dataset alone: each stage by itself, all together in the pipeline, one verdict, and remedies that were tried."""

from __future__ import annotations

import itertools
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from stoker.config import available_cpus, check_range, check_seconds
from stoker.diagnosis.files import files_of
from stoker.diagnosis.session import doctor
from stoker.diagnosis.stage_speeds import decoding_speed, reading_speed
from stoker.diagnosis.trials import Trial, endless, try_ways, ways_for
from stoker.errors import ConfigError
from stoker.feed import Loader
from stoker.feed.opening import open_main_split
from stoker.storage.page_cache import require_cold
from stoker.views import CenterCrop, RandomResizedCrop

if TYPE_CHECKING:
    from stoker.diagnosis.report import DoctorReport
    from stoker.diagnosis.trials import OnTurn
    from stoker.feed import Dataset

_SIDE = 224
_RESIZE = 256
_LEAST_BATCHES = 12
_ROUNDS = 3
_LEAST_SPEEDUP = 1.1


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """What to look at.

    Attributes:
        dataset: Anything that `stoker.open` takes.
        split: Its split; None: the only one, or ``train``.
        view: ``train``: random crops resized to 224, mirrored. ``eval``: shorter side 256, centre 224.
        batch_size: Images per batch; fewer where the dataset has fewer than a few batches.
        threads: Decoding threads; None: one per CPU.
        seconds: Time for the pipeline; stages alone take a third of it each, and a turn of a remedy a fifth.
        cold: Whether the files are dropped from the page cache first; no remedy is tried then.

    Raises:
        ConfigError: A number is out of range.
    """

    dataset: str
    split: str | None = None
    view: Literal["train", "eval"] = "train"
    batch_size: int = 64
    threads: int | None = None
    seconds: float = 5.0
    cold: bool = False

    def __post_init__(self) -> None:
        check_range("batch_size", self.batch_size, 1, 2**16)
        check_seconds("seconds", self.seconds, 0.1, 3600)
        if self.threads is not None:
            check_range("threads", self.threads, 1, 4096)
        if self.view not in ("train", "eval"):
            raise ConfigError(f"view is {self.view!r}; it must be train or eval")


@dataclass(frozen=True, slots=True)
class StageSpeed:
    """One part of the work.

    Attributes:
        name: What it is.
        alone: Images a second when all threads do nothing else; None where it cannot be done alone.
        share: Of the decoding threads' busy time in the pipeline; None of what is no stage there.
    """

    name: str
    alone: float | None
    share: float | None


@dataclass(frozen=True, slots=True)
class DatasetReport:
    """What was found.

    Attributes:
        spec: What was looked at.
        images: Samples of the split.
        batch_size: The one that was used.
        threads: The same.
        diagnosis: The pipeline's, with an empty training loop.
        stages: Each part of the work.
        trials: What was tried against the verdict, the present way first; nothing where nothing could be.
        remedy: The best of them with what it brought, or the diagnosis' own.
    """

    spec: DatasetSpec
    images: int
    batch_size: int
    threads: int
    diagnosis: DoctorReport
    stages: tuple[StageSpeed, ...]
    trials: tuple[Trial, ...]
    remedy: str

    def document(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        found = self.diagnosis.document()
        own = {name: getattr(self, name) for name in ("images", "batch_size", "threads")}
        stages, trials = [asdict(stage) for stage in self.stages], [asdict(trial) for trial in self.trials]
        return {"spec": asdict(self.spec), **own, **found, "remedy": self.remedy, "stages": stages, "trials": trials}


def examine(spec: DatasetSpec, on_turn: OnTurn | None = None) -> DatasetReport:
    """Find out what holds up the reading of a dataset.

    Args:
        spec: What to look at.
        on_turn: Told before each part with its number from 0, the number of parts, and its name.

    Raises:
        DatasetNotFoundError: There is no such dataset.
        ConfigError: It has no samples; or with ``cold``, its files cannot be dropped from the page cache.
        StokerError: A sample is damaged.
    """
    dataset = open_main_split(spec.dataset, spec.split)
    threads = available_cpus() if spec.threads is None else spec.threads
    size = max(1, min(spec.batch_size, len(dataset) // _LEAST_BATCHES))
    settings: dict[str, Any] = {"batch_size": size, "threads": threads, "view": _view(spec.view)}
    tell = on_turn or (lambda number, turns, name: None)  # noqa: ARG005 - nobody is told
    if spec.cold:
        require_cold(files_of(dataset))
    tell(0, 3, "the pipeline")
    diagnosis = _in_the_pipeline(dataset, settings, spec)
    tell(1, 3, "reading alone")
    if spec.cold:
        require_cold(files_of(dataset))
    reading = reading_speed(dataset, threads, spec.seconds / 3)
    tell(2, 3, "decoding alone")
    decoding = decoding_speed(dataset, _view(spec.view), threads, spec.seconds / 3)
    trials: list[Trial] = []
    if not spec.cold:  # the files are in memory by now
        with ways_for(diagnosis.verdict, dataset, settings, diagnosis.evidence) as ways:
            trials = try_ways(ways, _ROUNDS, spec.seconds / 5, on_turn) if ways else []
    return DatasetReport(
        spec=spec,
        images=len(dataset),
        batch_size=size,
        threads=threads,
        diagnosis=diagnosis,
        stages=_stages(diagnosis, reading, decoding),
        trials=tuple(trials),
        remedy=_remedy(diagnosis, trials, cold=spec.cold),
    )


def _view(name: str) -> RandomResizedCrop | CenterCrop:
    return RandomResizedCrop(_SIDE, hflip=0.5) if name == "train" else CenterCrop(_SIDE, _RESIZE)


def _in_the_pipeline(dataset: Dataset, settings: dict[str, Any], spec: DatasetSpec) -> DoctorReport:
    # A second pass would find in memory what the first has read: cold figures are those of one pass.
    data = dataset if spec.cold else endless(dataset, settings["batch_size"])
    with (
        Loader(data, shuffle=spec.view == "train", tail="drop", rank=0, world_size=1, **settings) as loader,
        doctor(loader, replay=0, quiet=True) as watching,
    ):
        began = time.perf_counter()
        epochs = itertools.repeat(loader, 1) if spec.cold else itertools.repeat(loader)
        for taken, _ in enumerate(itertools.chain.from_iterable(epochs)):
            if taken >= _LEAST_BATCHES and time.perf_counter() - began > spec.seconds:
                break
    return watching.report


def _stages(diagnosis: DoctorReport, reading: float, decoding: float | None) -> tuple[StageSpeed, ...]:
    shares = diagnosis.evidence.stages
    read = sum(shares.get(name, 0.0) for name in ("read", "remote", "check"))
    decode = sum(shares.get(name, 0.0) for name in ("decode", "resample", "convert"))
    return (
        StageSpeed("read and check", reading, read),
        StageSpeed("decode and resize", decoding, decode),
        StageSpeed("all, in the pipeline", diagnosis.images_per_second, None),
    )


def _remedy(diagnosis: DoctorReport, trials: list[Trial], *, cold: bool) -> str:
    if cold:
        return f"{diagnosis.remedy}; nothing was tried: what is measured now finds the files in memory"
    best = max(trials[1:], key=lambda trial: trial.speedup, default=None)
    if best is None:
        return diagnosis.remedy
    if best.speedup < _LEAST_SPEEDUP:
        return f"none of {', '.join(trial.name for trial in trials[1:])} brought more than {best.speedup:.2f}x here"
    return f"{best.remedy}; measured: {best.speedup:.1f}x"

"""A dataset alone: each stage by itself, all together in the pipeline, one verdict, and remedies that were tried."""

from __future__ import annotations

import contextlib
import itertools
import shlex
import statistics
import time
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stoker import _native
from stoker.config import check_range, check_seconds
from stoker.errors import ConfigError, StokerError
from stoker.inspect.diagnosis.loop import doctor
from stoker.inspect.diagnosis.system import files_of
from stoker.loader import Loader, ReadAhead, cpu_share, mix, open_main_split
from stoker.order import BlockShuffle
from stoker.recipe import Recipe, StoredSize, convert, sniff
from stoker.storage import require_cold, stoppable_pool
from stoker.transforms import CenterCrop, RandomResizedCrop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from stoker.format import RecordKeys
    from stoker.inspect.diagnosis.decision import DoctorReport, Evidence, Verdict
    from stoker.loader import Dataset, Mix
    from stoker.types import DecodeMode

    OnTurn = Callable[[int, int, str], None]

_SIDE = 224
_RESIZE = 256
_LEAST_BATCHES = 12
_EPOCH_BATCHES = 64
"""An epoch shorter than that is made longer, because each begins with an empty pipeline."""
_ROUNDS = 3
_LEAST_SPEEDUP = 1.1
_PREFETCH = 8
_REMOTE_READERS = 32
_MOST_IMAGES = 512
_MOST_IMAGE_BYTES = 128_000_000
"""Of the images that are kept in memory to be decoded again and again."""
_MOST_RECODED = 128
_LEAST_SLICE = 32
_PER_THREAD = 16
"""Images that each thread has at a time: with fewer, threads would stand idle at the end of each slice."""


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """What to look at.

    Attributes:
        dataset: Anything that `stoker.open` takes.
        split: Its split; None: the only one, or ``train``.
        transform: ``train``: random crops resized to 224, mirrored. ``eval``: shorter side 256, centre 224.
        batch_size: Images per batch; fewer where the dataset has fewer than a few batches.
        threads: Decoding threads; None: as many as a loader starts.
        seconds: Time for the pipeline; stages alone take a third of it each, and a turn of a remedy a fifth.
        cold: Whether the files are dropped from the page cache first; no remedy is tried then.
        keys: Of TFRecords of other origin: where they hold what, as far as their first record does not tell.

    Raises:
        ConfigError: A number is out of range.
    """

    dataset: str
    split: str | None = None
    transform: Literal["train", "eval"] = "train"
    batch_size: int = 64
    threads: int | None = None
    seconds: float = 5.0
    cold: bool = False
    keys: RecordKeys | None = None

    def __post_init__(self) -> None:
        check_range("--batch-size", self.batch_size, 1, 2**16)
        check_seconds("--seconds", self.seconds, 0.1, 3600)
        if self.threads is not None:
            check_range("--threads", self.threads, 1, 4096)
        if self.transform not in ("train", "eval"):
            raise ConfigError(f"transform is {self.transform!r}; it must be train or eval")


@dataclass(frozen=True, slots=True)
class StageSpeed:
    """One part of the work.

    Attributes:
        name: What it is.
        alone: Images a second when all threads do nothing else; None where it cannot be done alone.
        share: Of the decoding threads' busy time in the pipeline; None for the whole pipeline.
    """

    name: str
    alone: float | None
    share: float | None


@dataclass(frozen=True, slots=True)
class Trial:
    """One remedy, measured.

    Attributes:
        name: What was changed; of the first, that it is as it was.
        remedy: What to type to have it, and what it costs.
        images_per_second: Median of the turns.
        speedup: Median over the rounds of its speed over that of the first in the same round.
    """

    name: str
    remedy: str
    images_per_second: float
    speedup: float


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
    """Find out what slows down the reading of a dataset.

    Args:
        spec: What to look at.
        on_turn: Called before each part with its number from 0, the number of parts, and its name.

    Raises:
        DatasetNotFoundError: There is no such dataset.
        ConfigError: It has no samples; or with ``cold``, its files cannot be dropped from the page cache.
        StokerError: A sample is damaged.
    """
    dataset = open_main_split(spec.dataset, spec.split, spec.keys)
    threads = cpu_share().threads if spec.threads is None else spec.threads
    size = max(1, min(spec.batch_size, len(dataset) // _LEAST_BATCHES))
    transform = RandomResizedCrop(_SIDE, hflip=0.5) if spec.transform == "train" else CenterCrop(_SIDE, _RESIZE)
    settings: dict[str, Any] = {"batch_size": size, "threads": threads, "transform": transform}
    report = on_turn or (lambda *_: None)
    if spec.cold:
        require_cold(files_of(dataset))
    report(0, 3, "the pipeline")
    diagnosis = _in_the_pipeline(dataset, settings, spec)
    report(1, 3, "reading alone")
    if spec.cold:
        require_cold(files_of(dataset))
    reading = _reading_speed(dataset, threads, spec.seconds / 3)
    report(2, 3, "decoding alone")
    jpegs = _some_jpegs(dataset, spec.seconds / 3)
    decoding = decoding_speed(jpegs, transform, threads, spec.seconds / 3) if jpegs else None
    ways: list[Way] = []
    if not spec.cold:  # the files are in memory by now
        if diagnosis.verdict != "decode-bound":
            ways = ways_to_load(diagnosis.verdict, dataset, settings, diagnosis.evidence)
        elif decoding is not None and not diagnosis.evidence.mostly_converts:
            ways = ways_to_decode(dataset, jpegs, transform, threads)
    trials = _try(ways, spec.seconds / 5, report)
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


def _in_the_pipeline(dataset: Dataset, settings: dict[str, Any], spec: DatasetSpec) -> DoctorReport:
    # A second pass would find in memory what the first has read: cold figures are those of one pass.
    data = dataset if spec.cold else _long_enough(dataset, settings["batch_size"])
    with (
        Loader(data, shuffle=spec.transform == "train", tail="drop", rank=0, world_size=1, **settings) as loader,
        doctor(loader, quiet=True) as watching,
    ):
        began = time.perf_counter()
        epochs = itertools.repeat(loader, 1) if spec.cold else itertools.repeat(loader)
        for taken, _ in enumerate(itertools.chain.from_iterable(epochs)):
            if taken >= _LEAST_BATCHES and time.perf_counter() - began > spec.seconds:
                break
    return watching.report


def _long_enough(dataset: Dataset, batch_size: int) -> Dataset | Mix:
    least = _EPOCH_BATCHES * batch_size
    return dataset if len(dataset) >= least else mix([dataset], samples_per_epoch=least)


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


def _reading_speed(dataset: Dataset, threads: int, seconds: float) -> float:
    """Return records or files read a second, in random order; a store gets more threads than a disk."""
    readers = threads if dataset.remote is None else _REMOTE_READERS
    order = np.random.default_rng(0).permutation(len(dataset))
    ends = time.perf_counter() + seconds

    def read(numbers: NDArray[Any]) -> int:
        done = 0
        for number in numbers.tolist():
            dataset.records.read(number)
            done += 1
            if time.perf_counter() > ends:
                break
        return done

    began = time.perf_counter()
    with stoppable_pool(readers, "stoker-read") as pool:
        done = sum(pool.map(read, np.array_split(order, readers)))
    return done / (time.perf_counter() - began)


def _some_jpegs(dataset: Dataset, seconds: float) -> list[bytes]:
    """Return some of the images, if they are plain JPEGs, and no more than there is time and memory for."""
    ends, images, held = time.perf_counter() + seconds, [], 0
    for number in range(0, len(dataset), max(1, len(dataset) // _MOST_IMAGES)):
        encoded = dataset[number].encoded
        with contextlib.suppress(StokerError):  # pixels, or damaged
            if sniff(encoded) == "jpeg" and convert(encoded, Recipe()).converted is None:
                images.append(encoded)
                held += len(encoded)
        if len(images) == _MOST_IMAGES or held > _MOST_IMAGE_BYTES or (images and time.perf_counter() > ends):
            break
    return images


def decoding_speed(
    images: Sequence[bytes],
    transform: RandomResizedCrop | CenterCrop,
    threads: int,
    seconds: float,
    decode: DecodeMode = "exact",
) -> float | None:
    """Return images a second that threads decode from memory and resize, and do nothing else; None if one is damaged.

    Args:
        images: JPEGs; they are taken again and again, as many as there is time for.
        transform: What is made of each.
        threads: Decoding threads.
        seconds: For how long, about.
        decode: How.
    """
    size = max(_LEAST_SLICE, _PER_THREAD * threads)

    def run(first: int) -> None:
        indices = (np.arange(first, first + size) % len(images)).astype(np.uint64)
        _native.decode_loop(
            images=images,
            indices=indices,
            transform=transform.native(),
            seed=0,
            epoch=first,
            threads=threads,
            decode=decode,
        )

    try:
        run(0)
        began, done = time.perf_counter(), 0
        while done == 0 or time.perf_counter() - began < seconds:
            done += size
            run(done)
        return done / (time.perf_counter() - began)
    except StokerError:
        return None


@dataclass(frozen=True, slots=True)
class Way:
    """Something to try.

    Attributes:
        name: What is changed.
        remedy: What to type to have it, and what it costs.
        speed: Measures images a second in about so many seconds; the second argument differs from turn to turn.
    """

    name: str
    remedy: str
    speed: Callable[[float, int], float]


def _try(ways: list[Way], seconds: float, on_turn: OnTurn) -> list[Trial]:
    """Measure ways in turns; the first is what the others are compared with."""
    speeds: list[list[float]] = [[] for _ in ways]
    for turn in range(_ROUNDS * len(ways)):
        number = turn % len(ways)
        on_turn(turn, _ROUNDS * len(ways), ways[number].name)
        speeds[number].append(ways[number].speed(seconds, turn))
    return [
        Trial(
            way.name,
            way.remedy,
            statistics.median(own),
            statistics.median(mine / first for mine, first in zip(own, speeds[0], strict=True)),
        )
        for way, own in zip(ways, speeds, strict=True)
    ]


def ways_to_decode(
    dataset: Dataset, images: Sequence[bytes], transform: RandomResizedCrop | CenterCrop, threads: int
) -> list[Way]:
    """Return the decode mode and the recipes that make decoding cheaper, on some of the dataset's images, in memory."""
    some = images[:_MOST_RECODED]

    def speed(images: Sequence[bytes], decode: DecodeMode, seconds: float, _: int) -> float:
        return decoding_speed(images, transform, threads, seconds, decode) or 0.0

    fast = 'decode="fast": other pixels, within a stated PSNR (docs/explanation/performance.md)'
    ways = [
        Way("as it is", "", partial(speed, some, "exact")),
        Way('decode="fast"', fast, partial(speed, some, "fast")),
    ]
    recipes = [("--recipe restart", Recipe(restart=True), "a rebuild without any loss")]
    if statistics.median(map(_short_side, some)) > _RESIZE:
        small = Recipe(resize=StoredSize("short", _RESIZE, _RESIZE))
        recipes.append((f"--resize short:{_RESIZE}", small, "a rebuild that keeps fewer pixels"))
    command = f"stoker {'repack' if dataset.shards else 'build'} {shlex.quote(dataset.path)} NEW"
    for name, recipe, cost in recipes:
        recoded = list(_recoded(some, recipe))
        ways.append(Way(name, f"{command} {name}: {cost}", partial(speed, recoded, "exact")))
    return ways


def _recoded(images: Sequence[bytes], recipe: Recipe) -> Iterator[bytes]:
    for image in images:
        with contextlib.suppress(StokerError):  # a build would reject it
            yield convert(image, recipe).data


def _short_side(image: bytes) -> int:
    info = _native.probe_jpeg(image)
    return min(info.width, info.height)


def ways_to_load(verdict: Verdict, dataset: Dataset, settings: dict[str, Any], evidence: Evidence) -> list[Way]:
    """Return the settings of a loader that may help, after the present ones; nothing where there are none.

    Args:
        verdict: What holds the speed down.
        dataset: What is read.
        settings: Of its loader.
        evidence: What the verdict was found by.
    """
    setup = evidence.setup
    more_threads, connections = max(8, 4 * setup.cpus), 2 * setup.connections
    changes: list[tuple[str, str, dict[str, Any]]] = []
    if verdict == "thread-bound" and evidence.lacks_threads:
        name = f"threads={setup.cpus}"
        changes = [(name, f"{name}, or leave threads= out", {"threads": setup.cpus})]
    elif verdict == "thread-bound":
        name = f"prefetch={_PREFETCH}"
        changes = [(name, f"{name}: costs memory for more batches", {"prefetch": _PREFETCH})]
    elif verdict == "storage-bound" and dataset.remote is not None:
        more = f"read_ahead=stoker.ReadAhead(connections={connections})"
        blocks = "shuffle=stoker.BlockShuffle(): stoker.order.shuffle_quality measures how well it mixes"
        changes = [
            (f"{connections} connections", more, {"read_ahead": ReadAhead(connections=connections)}),
            ("block shuffle", blocks, {"shuffle": BlockShuffle()}),
        ]
    elif verdict == "storage-bound" and setup.threads < more_threads:
        name = f"threads={more_threads}"
        changes = [(name, f"{name}: threads that wait for a disk cost no CPU", {"threads": more_threads})]
    if not changes:
        return []
    tried = [("as it is", "", {}), *changes]
    return [Way(name, remedy, partial(_loading_speed, dataset, settings | changed)) for name, remedy, changed in tried]


def _loading_speed(dataset: Dataset, given: dict[str, Any], seconds: float, seed: int) -> float:
    """Return samples a second of a new loader, without its first batches."""
    usual: dict[str, Any] = {"shuffle": True, "tail": "drop", "rank": 0, "world_size": 1, "prefetch": 3}
    settings = usual | given
    with Loader(_long_enough(dataset, settings["batch_size"]), seed=seed, **settings) as loader:
        batches: Iterator[Any] = itertools.chain.from_iterable(itertools.repeat(loader))
        for _ in range(settings["prefetch"] + 1):
            next(batches)
        began, samples, taken = time.perf_counter(), 0, 0
        while taken < 2 or time.perf_counter() - began < seconds:
            samples += len(next(batches))
            taken += 1
        return samples / (time.perf_counter() - began)

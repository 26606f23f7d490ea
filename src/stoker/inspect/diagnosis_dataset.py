"""Diagnosis of a dataset without a training loop: speeds of its stages, one verdict, and remedies that were tried."""

from __future__ import annotations

import contextlib
import itertools
import shlex
import statistics
import time
import warnings
from collections import Counter
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker import _native
from stoker.config import format_count
from stoker.errors import BadSampleWarning, StokerError, StorageError
from stoker.image import info
from stoker.inspect.diagnosis import doctor
from stoker.inspect.diagnosis_decision import decide, rebuild_command
from stoker.inspect.info import ranked
from stoker.inspect.measuring import (
    RESIZE,
    Meter,
    ReadSpec,
    decode_endlessly,
    endless,
    files_of,
    in_turns,
    loader_alone,
    median_ratio,
    require_cold,
)
from stoker.loader import ReadAhead, cpu_share, mix, open_main_split
from stoker.order import BlockShuffle, random_sample
from stoker.recipe import JpegEncode, Recipe, StoredSize, by_decoder, check, convert, decode, is_turned, sniff
from stoker.storage import stoppable_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from stoker.inspect.diagnosis_decision import DoctorReport, Evidence, Verdict
    from stoker.loader import Dataset, Loader, Mix
    from stoker.transforms import CenterCrop, RandomResizedCrop
    from stoker.types import DecodeMode

    OnTurn = Callable[[int, int, str], None]

_LEAST_BATCHES = 12
_EPOCH_BATCHES = 64
"""An epoch shorter than that is made longer, because each begins with an empty pipeline."""
_ROUNDS = 3
_LEAST_SPEEDUP = 1.1
_PREFETCH = 8
_REMOTE_READERS = 32
_LEAST_IMAGES, _MOST_IMAGES = 100, 512
"""Number of images that are decoded alone. No rebuild is advised by fewer, unless the dataset has no more."""
_MOST_IMAGE_BYTES = 128_000_000
"""The most bytes of images that are kept in memory to be decoded again and again."""
_MOST_RECODED = 128
_QUALITY = 95
_LEAST_SLICE = 32
_SEEDS = itertools.count()
"""Seeds of turns, so that a turn reads other samples than the turn before."""
_PER_THREAD = 16
"""Images of each thread in a slice: with fewer, threads would be idle for long at the end of each slice."""


@dataclass(frozen=True, slots=True)
class DatasetSpec(ReadSpec):
    """What to measure, and how long.

    The pipeline runs for ``seconds``, each stage for a third of that, and each turn of a remedy for a fifth. With
    ``cold`` no remedy is tried.
    """

    seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class StageSpeed:
    """The speed of one part of the work."""

    name: str
    alone: float | None  # median images a second with nothing else to do; None where that cannot be measured
    spread: tuple[float, float] | None  # in the slowest turn and in the fastest; None where there were no turns
    share: float | None  # of the decoding threads' busy time in the pipeline; None for the whole pipeline


@dataclass(frozen=True, slots=True)
class Trial:
    """One remedy that was measured."""

    name: str  # what was changed; the first trial changes nothing
    remedy: str  # what to type to apply it, and what it costs
    images_per_second: float  # median of the turns
    spread: tuple[float, float]  # in the slowest turn and in the fastest
    speedup: float  # median over the rounds of its speed relative to the first trial in the same round


@dataclass(frozen=True, slots=True)
class PillowSpeed:
    """How fast Pillow decodes the images that the core leaves to it, from memory and without resizing."""

    share: float  # share of the images looked at that it decodes
    cpu_seconds: float  # CPU time of one such image
    alone: float  # such images a second on one thread
    together: float  # the same on all threads, which take turns wherever Pillow holds the GIL
    spread: tuple[float, float]  # of ``together``, in the slowest turn and in the fastest


@dataclass(frozen=True, slots=True)
class DatasetReport:
    """The diagnosis of a dataset, with what was measured and tried."""

    spec: DatasetSpec
    images: int  # samples of the split
    batch_size: int
    threads: int
    formats: Mapping[str, int]  # number of images looked at, by format; empty for pixels
    turned: int  # how many of these have an EXIF orientation that turns or mirrors them
    unreadable: Sequence[str]  # why images could not be loaded, in the order of the dataset
    pillow: PillowSpeed | None  # speed on images that the core leaves to Pillow; None if there are none
    diagnosis: DoctorReport  # the pipeline's, with an empty training loop
    stages: tuple[StageSpeed, ...]  # each part of the work
    trials: tuple[Trial, ...]  # what was tried, after a trial that changes nothing; may be empty
    remedy: str  # that of the best trial with its speed-up, or that of the diagnosis

    def document(self) -> dict[str, Any]:
        """Return the report as values that JSON can hold."""
        own = asdict(self)
        del own["diagnosis"]
        orientation = {"images": own.pop("turned"), "looked_at": sum(self.formats.values())}
        return {**self.diagnosis.document(), **own, "exif_orientation": orientation}


def examine(spec: DatasetSpec, report: OnTurn) -> DatasetReport:
    """Find out what slows the reading of a dataset.

    ``report`` is called before each part with its number from 0, the number of parts, and its name.
    """
    dataset = open_main_split(spec.dataset, spec.split, spec.keys, source=spec.source)
    threads = cpu_share().threads if spec.threads is None else spec.threads
    size = max(1, min(spec.batch_size, len(dataset) // _LEAST_BATCHES))
    transform = spec.crop
    settings: dict[str, Any] = {"batch_size": size, "threads": threads, "transform": transform}
    if spec.cold:
        require_cold(files_of(dataset))
    report(0, 2, "the pipeline")
    diagnosis, unreadable = _diagnose_pipeline(dataset, settings, spec)
    report(1, 2, "some of the images")
    native, others = _some_images(dataset, spec.seconds / 3)
    pillow = None
    if others:
        pillow = _pillow_speed(others, len(others) / (len(native) + len(others)), threads, spec.seconds / 3)
    if spec.cold:
        require_cold(files_of(dataset))
    parts: dict[str, Callable[[float], float]] = {
        "reading alone": partial(_reading_speed, dataset, threads),
        "decoding alone": lambda seconds: decoding_speed(native, transform, threads, seconds) or 0.0,
    }
    if spec.cold:  # another pass would find the files in memory
        speeds = [*in_turns(parts, 1, spec.seconds / 3, report).values(), [diagnosis.images_per_second]]
    else:
        parts["the pipeline"] = partial(_loading_speed, dataset, settings | {"shuffle": spec.is_shuffled})
        speeds = list(in_turns(parts, _ROUNDS, spec.seconds / 3 / _ROUNDS, report).values())
    ways: list[Way] = []
    if not spec.cold:  # the files are in memory by now
        if diagnosis.verdict != "decode-bound":
            ways = ways_to_load(diagnosis.verdict, dataset, settings, diagnosis.evidence)
        elif native and not diagnosis.evidence.mostly_converts:
            least = min(_LEAST_IMAGES, len(dataset) - len(unreadable))
            enough = len(native) + len(others) >= least and max(speeds[1]) >= min(speeds[2])
            ways = ways_to_decode(dataset, native, transform, threads, len(unreadable) if enough else None)
    trials = _try(ways, spec.seconds / 5, report)
    return DatasetReport(
        spec=spec,
        images=len(dataset),
        batch_size=size,
        threads=threads,
        formats=ranked(Counter(map(sniff, native + others))),
        turned=sum(map(is_turned, native + others)),
        unreadable=unreadable,
        pillow=pillow,
        diagnosis=diagnosis,
        stages=_stages(diagnosis, speeds, pillow),
        trials=tuple(trials),
        remedy=_remedy(diagnosis, trials, cold=spec.cold),
    )


def _diagnose_pipeline(
    dataset: Dataset, settings: dict[str, Any], spec: DatasetSpec
) -> tuple[DoctorReport, Sequence[str]]:
    """Run the pipeline; return its diagnosis, and why samples could not be loaded."""
    # A second pass would find in memory what the first has read: cold figures are those of one pass.
    data = dataset if spec.cold else _long_enough(dataset, settings["batch_size"])
    reasons: dict[int, str] = {}
    with _loader(data, shuffle=spec.is_shuffled, **settings) as loader, doctor(loader, quiet=True) as watching:
        began, taken, is_over = time.perf_counter(), 0, False
        while not is_over:
            for _ in loader:
                is_over = taken >= _LEAST_BATCHES and time.perf_counter() - began > spec.seconds
                if is_over:
                    break
                taken += 1
            reasons |= {sample.index: str(sample.error) for sample in loader.bad_samples.samples}
            is_over = is_over or spec.cold
    evidence = replace(watching.report.evidence, unreadable=len(reasons))
    return decide(evidence), [reasons[index] for index in sorted(reasons)]


@contextlib.contextmanager
def _loader(data: Dataset | Mix, **settings: Any) -> Iterator[Loader]:
    """Load whole batches on one rank; samples that cannot be loaded are replaced, without the warning that says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BadSampleWarning)
        with loader_alone(data, tail="drop", **settings) as loader:
            yield loader


def _long_enough(dataset: Dataset, batch_size: int) -> Dataset | Mix:
    least = _EPOCH_BATCHES * batch_size
    return dataset if len(dataset) >= least else mix([dataset], samples_per_epoch=least)


def _stages(diagnosis: DoctorReport, speeds: list[list[float]], pillow: PillowSpeed | None) -> tuple[StageSpeed, ...]:
    shares = diagnosis.evidence.stages
    read = sum(shares.get(name, 0.0) for name in ("read", "remote", "check"))
    decoded = sum(shares.get(name, 0.0) for name in ("decode", "resample"))
    names = ("read and check", "decode and resize", "all, in the pipeline")
    stages = [
        StageSpeed(name, statistics.median(turns) or None, (min(turns), max(turns)) if any(turns) else None, share)
        for name, turns, share in zip(names, speeds, (read, decoded, None), strict=True)
    ]
    if pillow is not None:
        stages.insert(1, StageSpeed("decode with Pillow", pillow.together, pillow.spread, shares.get("convert")))
    return tuple(stages)


def _remedy(diagnosis: DoctorReport, trials: list[Trial], *, cold: bool) -> str:
    if cold:
        return f"{diagnosis.remedy}; nothing was tried: what is measured now finds the files in memory"
    best = max(trials[1:], key=lambda trial: trial.speedup, default=None)
    if best is None:
        return diagnosis.remedy
    if best.speedup < _LEAST_SPEEDUP:
        return f"none of {', '.join(trial.name for trial in trials[1:])} brought more than {best.speedup:.2f}x here"
    return f"{best.remedy}: {best.speedup:.1f}x"


def _reading_speed(dataset: Dataset, threads: int, seconds: float) -> float:
    """Return records or files read a second, in random order; a store gets more threads than a disk."""
    readers = threads if dataset.remote is None else _REMOTE_READERS
    order = np.random.default_rng(0).permutation(len(dataset))
    ends = time.perf_counter() + seconds

    def read(numbers: NDArray[Any]) -> int:
        done = 0
        for number in numbers.tolist():
            with _without_bad_samples():
                dataset.records.read(number)
                done += 1
            if time.perf_counter() > ends:
                break
        return done

    began = time.perf_counter()
    with stoppable_pool(readers, "stoker-read", only_reads=True) as pool:
        done = sum(pool.map(read, np.array_split(order, readers)))
    return done / (time.perf_counter() - began)


def _some_images(dataset: Dataset, seconds: float) -> tuple[list[bytes], list[bytes]]:
    """Return random images: those that the core decodes, and the others; both empty for a dataset of pixels."""
    ends, held = time.perf_counter() + seconds, 0
    native: list[bytes] = []
    others: list[bytes] = []
    if dataset.schema.image_encoding == "raw":
        return native, others
    for looked_at, number in enumerate(random_sample(_MOST_IMAGES, len(dataset)).tolist(), 1):
        with _without_bad_samples():
            encoded = dataset[number].encoded
            check(encoded, Recipe(check="entropy"))
            (native if by_decoder({sniff(encoded): 1})[0] else others).append(encoded)
            held += len(encoded)
        if held > _MOST_IMAGE_BYTES or (looked_at >= _LEAST_IMAGES and time.perf_counter() > ends):
            break
    return native, others


@contextlib.contextmanager
def _without_bad_samples() -> Iterator[None]:
    """Skip the rest of the block if a sample cannot be read or decoded; a store that fails is an error."""
    try:
        yield
    except StorageError:
        raise
    except (StokerError, OSError):
        pass


def _pillow_speed(some: Sequence[bytes], share: float, threads: int, seconds: float) -> PillowSpeed | None:
    """Return how fast Pillow decodes images on one thread and on all, in turns; None if an image is damaged."""
    try:
        began, count = time.perf_counter(), 0
        while count < len(some) and (count == 0 or time.perf_counter() - began < seconds / 2 / _ROUNDS):
            decode(some[count], _native.DEFAULT_MAX_PIXELS)
            count += 1
        images = some[:count]
        cases = {"alone": partial(_pillow_rate, images, 1), "together": partial(_pillow_rate, images, threads)}
        measured = in_turns(cases, _ROUNDS, seconds)
    except StokerError:
        return None
    (alone, spent_alone), (together, spent_together) = (zip(*turns, strict=True) for turns in measured.values())
    cpu_seconds, alone_rate, together_rate = map(statistics.median, (spent_alone + spent_together, alone, together))
    return PillowSpeed(share, cpu_seconds, alone_rate, together_rate, (min(together), max(together)))


def _pillow_rate(images: Sequence[bytes], threads: int, _: float) -> tuple[float, float]:
    """Return images a second that threads decode with Pillow, each image once, and the CPU time of one."""

    def run(image: bytes) -> float:
        began = time.thread_time()
        decode(image, _native.DEFAULT_MAX_PIXELS)
        return time.thread_time() - began

    with stoppable_pool(threads, "stoker-pillow", only_reads=True) as pool:
        began = time.perf_counter()
        spent = list(pool.map(run, images))
        return len(images) / (time.perf_counter() - began), sum(spent) / len(images)


def decoding_speed(
    images: Sequence[bytes],
    transform: RandomResizedCrop | CenterCrop,
    threads: int,
    seconds: float,
    decode: DecodeMode = "exact",
) -> float | None:
    """Return images a second that threads decode from memory and resize, over and over; None if an image is damaged.

    The images are of formats that the core decodes.
    """
    if not images:
        return None
    runs = decode_endlessly(images, transform, threads, max(_LEAST_SLICE, _PER_THREAD * threads), decode=decode)
    try:
        next(runs)
        return Meter(runs).rate(seconds)
    except StokerError:
        return None


@dataclass(frozen=True, slots=True)
class Way:
    """A change of the loader or of the images, to be tried."""

    name: str  # what is changed
    remedy: str  # what to type to apply it, and what it costs
    speed: Callable[[float], float]  # measures images a second, in about the given seconds


def _try(ways: list[Way], seconds: float, on_turn: OnTurn) -> list[Trial]:
    """Measure changes in turns; the others are compared with the first."""
    speeds = in_turns({way.name: way.speed for way in ways}, _ROUNDS, seconds, on_turn)
    return [
        Trial(
            way.name,
            way.remedy,
            statistics.median(own),
            (min(own), max(own)),
            median_ratio(own, speeds[ways[0].name]),
        )
        for way in ways
        for own in [speeds[way.name]]
    ]


def ways_to_decode(
    dataset: Dataset,
    images: Sequence[bytes],
    transform: RandomResizedCrop | CenterCrop,
    threads: int,
    rejects: int | None = 0,
) -> list[Way]:
    """Return the decode mode and the recipes that make decoding cheaper, to be tried on some images in memory.

    ``rejects`` is the number of images that a rebuild is known to leave out; None if no rebuild is to be advised.
    """
    some = images[:_MOST_RECODED]
    formats = {sniff(image) for image in some}

    def speed(images: Sequence[bytes], decode: DecodeMode, seconds: float) -> float:
        return decoding_speed(images, transform, threads, seconds, decode) or 0.0

    fast = 'decode="fast": other pixels, within a stated PSNR (docs/explanation/performance.md)'
    ways = [Way("as it is", "", partial(speed, some, "exact"))]
    recipes = []
    if "jpeg" in formats:
        ways.append(Way('decode="fast"', fast, partial(speed, some, "fast")))
        recipes.append(("--recipe restart", Recipe(restart=True), "a rebuild without any loss"))
    if formats - {"jpeg"}:
        lossy = Recipe(encode=JpegEncode(_QUALITY))
        recipes.append((f"--encode {lossy.encode}", lossy, "a lossy rebuild: JPEG takes less time than PNG and WebP"))
    if statistics.median(min(header.width, header.height) for header in map(info, some)) > RESIZE:
        small = Recipe(resize=StoredSize("short", RESIZE, RESIZE))
        recipes.append((f"--resize short:{RESIZE}", small, "a lossy rebuild that keeps fewer pixels"))
    measured = f"measured on {len(some)} of {format_count(len(dataset), 'image')}"
    for name, recipe, cost in () if rejects is None else recipes:
        recoded = list(_recoded(some, recipe))
        command = rebuild_command(shlex.quote(dataset.path), name, rejects or 0, loose=not dataset.shards)
        ways.append(Way(name, f"{command}: {cost}, {measured}", partial(speed, recoded, "exact")))
    return ways


def _recoded(images: Sequence[bytes], recipe: Recipe) -> Iterator[bytes]:
    for image in images:
        with contextlib.suppress(StokerError):  # a build would reject it
            yield convert(image, recipe).data


def ways_to_load(verdict: Verdict, dataset: Dataset, settings: dict[str, Any], evidence: Evidence) -> list[Way]:
    """Return settings of a loader that may help, after the present ones; empty if no settings may help."""
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


def _loading_speed(dataset: Dataset, given: dict[str, Any], seconds: float) -> float:
    """Return samples a second of a new loader with an order of its own, without its first batches."""
    settings = {"shuffle": True, "prefetch": 3, "seed": next(_SEEDS)} | given
    with _loader(_long_enough(dataset, settings["batch_size"]), **settings) as loader:
        sizes = map(len, endless(loader))
        for _ in range(settings["prefetch"] + 1):
            next(sizes)
        return Meter(sizes).rate(seconds)

"""Remedies tried on the spot: what each brings is measured, in turns with what there is now."""

from __future__ import annotations

import shlex
import statistics
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stoker import _native
from stoker.build import BuildSettings, SourceSettings, build
from stoker.errors import StokerError
from stoker.feed import Loader, Mix, ReadAhead, mix, open_dataset
from stoker.order import BlockShuffle
from stoker.recipe import Recipe, Resize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stoker.diagnosis.decision import Verdict
    from stoker.diagnosis.evidence import Evidence, Setup
    from stoker.feed import Dataset

    OnTurn = Callable[[int, int, str], None]

_SAMPLES = 256
SAMPLE_BYTES = 128_000_000
"""The most bytes of images that are kept for a trial."""
_SHORT_SIDE = 256
_PREFETCH = 8
_EPOCH_BATCHES = 64
"""An epoch shorter than that is made longer, because each begins with an empty pipeline."""


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
class Way:
    """A dataset and the settings of a loader of it."""

    name: str
    remedy: str
    dataset: Dataset
    settings: dict[str, Any] = field(default_factory=dict)


def endless(dataset: Dataset, batch_size: int) -> Dataset | Mix:
    """Return a dataset whose epoch is long enough to be measured."""
    least = _EPOCH_BATCHES * batch_size
    return dataset if len(dataset) >= least else mix([dataset], samples_per_epoch=least)


def try_ways(ways: list[Way], rounds: int, seconds: float, on_turn: OnTurn | None = None) -> list[Trial]:
    """Measure ways to read, in turns; the first is what the others are compared with.

    Args:
        ways: At least one.
        rounds: Turns of each.
        seconds: Time of a turn.
        on_turn: Called before each turn with its number from 0, the number of turns, and the way's name.
    """
    speeds: list[list[float]] = [[] for _ in ways]
    for turn in range(rounds * len(ways)):
        number = turn % len(ways)
        if on_turn is not None:
            on_turn(turn, rounds * len(ways), ways[number].name)
        speeds[number].append(_speed(ways[number], seconds, seed=turn))
    return [
        Trial(
            way.name,
            way.remedy,
            statistics.median(own),
            statistics.median(mine / first for mine, first in zip(own, speeds[0], strict=True)),
        )
        for way, own in zip(ways, speeds, strict=True)
    ]


def _speed(way: Way, seconds: float, seed: int) -> float:
    """Return samples a second of a new loader, without its first batches."""
    usual: dict[str, Any] = {"shuffle": True, "tail": "drop", "rank": 0, "world_size": 1, "prefetch": 3}
    settings = usual | way.settings
    dataset = endless(way.dataset, settings["batch_size"])
    with Loader(dataset, seed=seed, **settings) as loader:
        batches = _epochs(loader)
        for _ in range(settings["prefetch"] + 1):
            next(batches)
        began, samples, taken = time.perf_counter(), 0, 0
        while taken < 2 or time.perf_counter() - began < seconds:
            samples += len(next(batches))
            taken += 1
        return samples / (time.perf_counter() - began)


def _epochs(loader: Loader) -> Iterator[Any]:
    while True:
        yield from loader


@contextmanager
def ways_for(verdict: Verdict, dataset: Dataset, settings: dict[str, Any], evidence: Evidence) -> Iterator[list[Way]]:
    """Give what can be tried against a verdict, the present way first; nothing where there is nothing to try.

    Args:
        verdict: What holds the speed down.
        dataset: What is read.
        settings: Of its loader.
        evidence: What the verdict was found by.
    """
    if verdict == "decode-bound":
        with tempfile.TemporaryDirectory(prefix="stoker-doctor-") as folder:
            yield _rebuilt(dataset, settings, Path(folder))
        return
    now = Way("as it is", "", dataset, settings)
    ways = []
    if verdict == "thread-bound":
        ways = [_for_threads(dataset, settings, evidence)]
    elif verdict == "storage-bound":
        ways = _for_storage(dataset, settings, evidence.setup)
    yield [now, *ways] if ways else []


def _for_threads(dataset: Dataset, settings: dict[str, Any], evidence: Evidence) -> Way:
    if not evidence.lacks_threads:
        text = f"prefetch={_PREFETCH}"
        return Way(text, f"{text}: costs memory for more batches", dataset, settings | {"prefetch": _PREFETCH})
    cpus = evidence.setup.cpus
    return Way(f"threads={cpus}", f"threads={cpus}, or leave threads= out", dataset, settings | {"threads": cpus})


def _for_storage(dataset: Dataset, settings: dict[str, Any], setup: Setup) -> list[Way]:
    if dataset.remote is None:
        threads = max(8, 4 * setup.cpus)
        if setup.threads >= threads:
            return []
        text = f"threads={threads}: threads that wait for a disk cost no CPU"
        return [Way(f"threads={threads}", text, dataset, settings | {"threads": threads})]
    connections = 2 * setup.connections
    ahead, block = ReadAhead(connections=connections), BlockShuffle()
    more = f"read_ahead=stoker.ReadAhead(connections={connections})"
    blocks = "shuffle=stoker.BlockShuffle(): stoker.order.shuffle_quality measures how well it mixes"
    return [
        Way(f"{connections} connections", more, dataset, settings | {"read_ahead": ahead}),
        Way("block shuffle", blocks, dataset, settings | {"shuffle": block}),
    ]


def _rebuilt(dataset: Dataset, settings: dict[str, Any], folder: Path) -> list[Way]:
    """Return the decode mode and the recipes that make decoding cheaper, on some of the samples."""
    images = folder / "images"
    sides = _take_out(dataset, images)
    if not sides:
        return []
    base = open_dataset(images) if not dataset.shards else _build(images, folder / "keep", Recipe())
    fast = 'decode="fast": other pixels, within a stated PSNR (docs/performance.md)'
    command = f"stoker {'repack' if dataset.shards else 'build'} {shlex.quote(dataset.path)} NEW"
    ways = [
        Way("as it is", "", base, settings),
        Way('decode="fast"', fast, base, settings | {"decode": "fast"}),
    ]
    restart = Recipe(restart=True)
    recipes = [("--recipe restart", restart, "a rebuild without any loss")]
    if statistics.median(sides) > _SHORT_SIDE:
        text = f"--resize short:{_SHORT_SIDE}"
        small = Recipe(resize=Resize("short", _SHORT_SIDE, _SHORT_SIDE))
        recipes.append((text, small, "a rebuild that keeps fewer pixels"))
    for number, (name, recipe, cost) in enumerate(recipes):
        built = _build(images, folder / str(number), recipe)
        ways.append(Way(name, f"{command} {name}: {cost}", built, settings))
    return ways


def _take_out(dataset: Dataset, folder: Path) -> list[int]:
    """Write some of the images as files of one class; return the shorter side of each."""
    (folder / "train" / "sample").mkdir(parents=True)
    sides, size = [], 0
    for number in range(0, len(dataset), max(1, len(dataset) // _SAMPLES)):
        try:
            encoded = dataset[number].encoded
            info = _native.probe_jpeg(encoded)
        except StokerError:  # no JPEG, or damaged: a rebuild would meet it
            continue
        sides.append(min(info.width, info.height))
        (folder / "train" / "sample" / f"{number}.jpg").write_bytes(encoded)
        size += len(encoded)
        if size > SAMPLE_BYTES:
            break
    return sides


def _build(images: Path, destination: Path, recipe: Recipe) -> Dataset:
    build(BuildSettings(SourceSettings(str(images)), recipe, max_rejects=len(list(images.rglob("*.jpg")))), destination)
    return open_dataset(destination, "train")

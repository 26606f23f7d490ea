"""How a program may use loaders, and leave them: what `benchmarks.soak` does again and again."""

from __future__ import annotations

import gc
import threading
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import numpy as np

import stoker
from stoker.errors import ShardError
from stoker.inspect.resume import contents_of
from stoker.order import EpochOrder, Topology, take_step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

SEED = 23
EPOCHS = 3
JITTER = stoker.ColorJitter(0.4, 0.4, 0.4, 0.1)
COURSES: list[dict[str, Any]] = [
    {"transform": stoker.RandomResizedCrop(64, hflip=0.5, color_jitter=JITTER), "shuffle": True},
    {"transform": stoker.CenterCrop(48, resize=56), "output": stoker.Output("float32", "NCHW")},
    {"transform": stoker.Resize(32, hflip=0.5), "shuffle": stoker.BlockShuffle(block=16, window=3), "decode": "fast"},
    {"transform": stoker.MultiCrop(stoker.RandomResizedCrop(48), stoker.TopLeft(40)), "shuffle": True},
    {"transform": stoker.ObjectCrops(32), "shuffle": True},
    {"transform": stoker.Resize((24, 40)), "shuffle": True, "boxes": stoker.BoxOutput()},
]


class Wrong(Exception):  # noqa: N818 - what a consumer raises is his own affair
    """What a consumer of batches raises."""


@dataclass(slots=True)
class Known:
    """One course through a dataset, and what its samples became when they were first seen.

    Attributes:
        settings: Of its loaders.
        size: Samples of an epoch.
        seen: Of each epoch, a number for the content of each sample; 0: not seen yet.
    """

    settings: dict[str, Any]
    size: int
    seen: list[np.ndarray[Any, np.dtype[np.int64]]]
    lock: threading.Lock = field(default_factory=threading.Lock)

    def order(self, epoch: int) -> EpochOrder:
        """The pure order of an epoch."""
        return EpochOrder(self.size, self.settings.get("shuffle", False), SEED, epoch)

    def check(self, batch: stoker.Batch, keys: list[int]) -> None:
        """Hold a batch against the order and against what was seen before."""
        assert batch.indices.tolist() == keys, f"{self.settings}: {batch.indices.tolist()} came, and not {keys}"
        seen = self.seen[batch.position.epoch]
        for key, content in zip(keys, contents_of(batch), strict=True):
            number = hash((content.pixels, content.label, content.seed)) or 1
            with self.lock:
                known, seen[key] = int(seen[key]) or number, number
            assert known == number, f"{self.settings}: sample {key} has changed"


class Place:
    """A dataset, a damaged copy of it, and a scratch folder.

    Attributes:
        dataset: What is read.
        damaged: A copy in which one byte of one shard is another one.
        scratch: Where caches and traces lie.
        samples: How many came so far.
    """

    def __init__(self, dataset: str, damaged: Path, scratch: Path) -> None:
        self.dataset = stoker.open(dataset, "train")
        self.damaged = stoker.open(damaged, "train")
        self.scratch = scratch
        self.samples = 0
        self._kept = stoker.MemoryCache("16MB")
        self._node = stoker.NodeCache(scratch / "node", "64MB")
        boxes = self.dataset.has_boxes
        self.courses = [self._known(course) for course in COURSES if boxes or not needs_boxes(course)]

    def _known(self, settings: dict[str, Any]) -> Known:
        known = Known(settings, 0, [])
        with self.loader(known, batch_size=64) as loader:
            loader.set_epoch(0)
            known.size = sum(len(batch.indices) for batch in loader)
        known.seen = [np.zeros(known.size, np.int64) for _ in range(EPOCHS)]
        return known

    def loader(self, known: Known, dataset: stoker.Dataset | None = None, **settings: Any) -> stoker.Loader:
        """Make a loader of a course."""
        return stoker.Loader(dataset or self.dataset, seed=SEED, **known.settings, **settings)

    def cache(self, random: Random, known: Known) -> stoker.MemoryCache | stoker.NodeCache | None:
        """A cache of any kind: of this loader alone, or of many, with space for everything or for little."""
        pixels = known.settings.get("decode") != "fast"
        kinds: list[Callable[[], stoker.MemoryCache | stoker.NodeCache | None]] = [
            lambda: None,
            lambda: stoker.MemoryCache("32MB"),
            lambda: stoker.MemoryCache("1MB", keep="decoded" if pixels else "encoded"),
            lambda: self._kept,
            lambda: self._node,
            lambda: stoker.NodeCache(self.scratch / "little", "1MB"),
        ]
        return random.choice(kinds)()

    def any_loader(self, random: Random, known: Known, topology: Topology) -> stoker.Loader:
        """Make a loader whose settings are any that change no batch."""
        return self.loader(
            known,
            batch_size=topology.batch_size,
            rank=topology.rank,
            world_size=topology.world_size,
            threads=random.randint(1, 4),
            prefetch=random.randint(1, 5),
            cache=self.cache(random, known),
        )

    def batches(self, loader: stoker.Loader, known: Known) -> Iterator[stoker.Batch]:
        """Batches of the next epoch, each checked."""
        topology, state = loader.topology, loader.state_dict()
        consumed = state["consumed"]
        for batch in loader:
            step = take_step(known.order(batch.position.epoch), consumed, topology)
            known.check(batch, step.indices.tolist())
            consumed = batch.position.consumed
            self.samples += len(batch.indices)
            yield batch


def needs_boxes(course: dict[str, Any]) -> bool:
    """Whether a course is one through annotated objects."""
    return "boxes" in course or isinstance(course["transform"], stoker.ObjectCrops)


def any_topology(random: Random) -> Topology:
    """One of a few."""
    world = random.randint(1, 3)
    return Topology(random.choice([5, 8, 17]), random.randrange(world), world)


def started(place: Place, random: Random) -> tuple[stoker.Loader, Known]:
    """A loader that stands before any epoch."""
    known = random.choice(place.courses)
    loader = place.any_loader(random, known, any_topology(random))
    loader.set_epoch(random.randrange(EPOCHS))
    return loader, known


def to_the_end(place: Place, random: Random) -> None:
    """A whole epoch, with a trace or without, and a look at the statistics."""
    loader, known = started(place, random)
    folder = Path(mkdtemp(dir=place.scratch))
    with loader, stoker.trace(loader, folder / "t.json") if random.random() < 0.5 else nullcontext():
        for _ in place.batches(loader, known):
            pass
        stats = loader.stats()
        assert stats.samples > 0
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def left(place: Place, random: Random) -> None:
    """Left by ``break``; nothing is closed."""
    loader, known = started(place, random)
    for number, _ in enumerate(place.batches(loader, known)):
        if number == random.randrange(3):
            break


def iterator_kept(place: Place, random: Random) -> None:
    """The loader is closed, its iterator is not, and is part of a cycle that only the collector finds."""
    loader, known = started(place, random)
    batches = place.batches(loader, known)
    next(batches)
    loader.close()
    cycle: list[Any] = [batches, next]
    cycle.append(cycle)


def failed(place: Place, random: Random) -> None:
    """The consumer raises; the error holds its frames, and with them batches, until it is released."""
    loader, known = started(place, random)
    try:
        with loader:
            for _ in place.batches(loader, known):
                raise Wrong
    except Wrong:
        return


def turned_elsewhere(place: Place, random: Random) -> None:
    """Begins iterations and goes to other epochs before they are over."""
    loader, known = started(place, random)
    with loader:
        for _ in range(3):
            next(place.batches(loader, known))
            loader.set_epoch(random.randrange(EPOCHS))


def resumed(place: Place, random: Random) -> None:
    """Goes on from a state with other ranks: what is left of the order comes, and nothing else."""
    loader, known = started(place, random)
    with loader:
        for number, _ in enumerate(place.batches(loader, known)):
            if number == 2:
                break
        state = loader.state_dict()
    if state["consumed"] == known.size:
        return
    world, size = random.randint(1, 3), random.choice([3, 16])
    rest: dict[int, list[int]] = {}
    with ExitStack() as stack:
        for rank in range(world):
            other = stack.enter_context(place.any_loader(random, known, Topology(size, rank, world)))
            other.load_state_dict(state)
            for step, batch in enumerate(place.batches(other, known)):
                rest.setdefault(step, []).extend(batch.indices.tolist())
    keys = [key for step in sorted(rest) for key in rest[step]]
    order = known.order(state["epoch"])
    assert keys == order.take(state["consumed"], known.size - state["consumed"]).tolist()


def damaged(place: Place, random: Random) -> None:
    """Fails on a damaged record, and names it."""
    known = place.courses[0]
    try:
        with place.loader(known, place.damaged, batch_size=8, threads=random.randint(1, 3)) as loader:
            for batch in loader:
                place.samples += len(batch.indices)
    except ShardError as error:
        if error.path is not None and error.record is not None:
            return
    raise AssertionError("the damage was not found, or not named")


def opened(place: Place, _: Random) -> None:
    """Opened and never read; one is collected together with its dataset."""
    dataset = stoker.open(place.dataset.path, "train")
    sample = dataset[len(dataset) // 2]
    assert sample.encoded
    loader = stoker.Loader(dataset, batch_size=4, transform=stoker.Resize(16))
    dataset.loader = loader  # type: ignore[attr-defined] # a cycle, as programs make them
    del loader, dataset
    gc.collect(0)


USES: list[Callable[[Place, Random], None]] = [
    to_the_end, left, iterator_kept, failed, turned_elsewhere, resumed, damaged, opened,
]  # fmt: skip

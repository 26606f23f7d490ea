"""Uses loaders for an hour in every way, and shows that nothing stays behind.

    python -m benchmarks.soak DATASET --minutes 60 [--json RESULT]

Several threads open loaders, of all transforms, orders and caches, read them, and leave them in all the ways of `USES`.
Every batch is held against the pure order and against what the same sample looked like before. After each round, when
all threads have ended, open files, threads, files in the scratch folder and memory are looked at. Counts must be what
they were after the first rounds; memory must not grow by a line through all looks behind the first ten minutes,
in which allocators find their sizes, so shorter runs say nothing of it. Exit code 1: a leak.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import math
import os
import shutil
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import numpy as np

import stoker
from stoker.errors import ShardError
from stoker.order import EpochOrder, Topology, take_step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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


class Wrong(Exception):  # noqa: N818 - an error of the consumer, not of Stoker
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

    def check(self, batch: stoker.Batch, keys: list[int], epoch: int) -> None:
        """Hold a batch against the order and against what was seen before."""
        assert batch.indices.tolist() == keys, f"{self.settings}: {batch.indices.tolist()} came, and not {keys}"
        seen = self.seen[epoch]
        parts = batch.images if isinstance(batch.images, tuple) else (batch.images,)
        for row, key in enumerate(keys):
            pixels = tuple(np.asarray(part[row]).tobytes() for part in parts)
            number = hash((pixels, int(batch.labels[row]), int(batch.seeds[row]))) or 1
            with self.lock:
                known, seen[key] = int(seen[key]) or number, number
            assert known == number, f"{self.settings}: sample {key} has changed"


class Workload:
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
        return stoker.Loader(dataset or self.dataset, seed=SEED, tail="short", **known.settings, **settings)

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
        epoch, consumed = state["epoch"], state["consumed"]
        for batch in loader:
            step = take_step(known.order(epoch), consumed, topology)
            known.check(batch, step.indices.tolist(), epoch)
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


def started(workload: Workload, random: Random) -> tuple[stoker.Loader, Known]:
    """A loader that stands before any epoch."""
    known = random.choice(workload.courses)
    loader = workload.any_loader(random, known, any_topology(random))
    loader.set_epoch(random.randrange(EPOCHS))
    return loader, known


def to_the_end(workload: Workload, random: Random) -> None:
    """A whole epoch, with a trace or without, and a look at the statistics."""
    loader, known = started(workload, random)
    folder = Path(mkdtemp(dir=workload.scratch))
    with loader, stoker.trace(loader, folder / "t.json") if random.random() < 0.5 else nullcontext():
        for _ in workload.batches(loader, known):
            pass
        stats = loader.stats()
        assert stats.samples > 0
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def left(workload: Workload, random: Random) -> None:
    """Left by ``break``; nothing is closed."""
    loader, known = started(workload, random)
    for number, _ in enumerate(workload.batches(loader, known)):
        if number == random.randrange(3):
            break


def iterator_kept(workload: Workload, random: Random) -> None:
    """The loader is closed, its iterator is not, and is part of a cycle that only the collector finds."""
    loader, known = started(workload, random)
    batches = workload.batches(loader, known)
    next(batches)
    loader.close()
    cycle: list[Any] = [batches, next]
    cycle.append(cycle)


def failed(workload: Workload, random: Random) -> None:
    """The consumer raises; the error holds its frames, and with them batches, until it is released."""
    loader, known = started(workload, random)
    try:
        with loader:
            for _ in workload.batches(loader, known):
                raise Wrong
    except Wrong:
        return


def turned_elsewhere(workload: Workload, random: Random) -> None:
    """Begins iterations and goes to other epochs before they are over."""
    loader, known = started(workload, random)
    with loader:
        for _ in range(3):
            next(workload.batches(loader, known))
            loader.set_epoch(random.randrange(EPOCHS))


def resumed(workload: Workload, random: Random) -> None:
    """Goes on from a state with other ranks: what is left of the order comes, and nothing else."""
    loader, known = started(workload, random)
    with loader:
        for number, _ in enumerate(workload.batches(loader, known)):
            if number == 2:
                break
        state = loader.state_dict()
    if state["consumed"] == 0:  # the epoch was over
        return
    world, size = random.randint(1, 3), random.choice([3, 16])
    rest: dict[int, list[int]] = {}
    with ExitStack() as stack:
        for rank in range(world):
            other = stack.enter_context(workload.any_loader(random, known, Topology(size, rank, world)))
            other.load_state_dict(state)
            for step, batch in enumerate(workload.batches(other, known)):
                rest.setdefault(step, []).extend(batch.indices.tolist())
    keys = [key for step in sorted(rest) for key in rest[step]]
    order = known.order(state["epoch"])
    assert keys == order.take(state["consumed"], known.size - state["consumed"]).tolist()


def damaged(workload: Workload, random: Random) -> None:
    """Fails on a damaged record, and names it."""
    known = workload.courses[0]
    try:
        with workload.loader(known, workload.damaged, batch_size=8, threads=random.randint(1, 3)) as loader:
            for batch in loader:
                workload.samples += len(batch.indices)
    except ShardError as error:
        if error.path is not None and error.record is not None:
            return
    raise AssertionError("the damage was not found, or not named")


def opened(workload: Workload, _: Random) -> None:
    """Opened and never read; one is collected together with its dataset."""
    dataset = stoker.open(workload.dataset.path, "train")
    sample = dataset[len(dataset) // 2]
    assert sample.encoded
    loader = stoker.Loader(dataset, batch_size=4, transform=stoker.Resize(16))
    dataset.loader = loader  # type: ignore[attr-defined] # a cycle, as programs make them
    del loader, dataset
    gc.collect(0)


USES: list[Callable[[Workload, Random], None]] = [
    to_the_end, left, iterator_kept, failed, turned_elsewhere, resumed, damaged, opened,
]  # fmt: skip


COUNTED = ("descriptors", "threads", "files")
MEASURED = ("resident_bytes", "anonymous_bytes", "heap_bytes", "python_blocks")
LIMITS = {"resident_bytes": 4 << 20, "anonymous_bytes": 4 << 20, "heap_bytes": 1 << 20, "python_blocks": 20_000}
_SETTLING_SECONDS = 5.0
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of <malloc.h>
_FIRST_THRESHOLD = 128 << 10  # bytes; what glibc starts with


class _Mallinfo2(ctypes.Structure):
    """``struct mallinfo2`` of glibc."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Look:
    """What this process held at a moment at which nothing was going on.

    Attributes:
        seconds: Since the soak began.
        descriptors: Open files, the one that lists them not counted.
        threads: Of the system's counting.
        files: In the scratch folder.
        resident_bytes: Memory of the process that lies in RAM, after the heap gave back what it could.
        anonymous_bytes: The part of it that is of no file.
        heap_bytes: What ``malloc`` has handed out, of all arenas.
        python_blocks: What the allocator of Python has handed out.
    """

    seconds: float
    descriptors: int
    threads: int
    files: int
    resident_bytes: int
    anonymous_bytes: int
    heap_bytes: int
    python_blocks: int


@dataclass(frozen=True, slots=True)
class Trend:
    """A straight line through measurements of one kind.

    Attributes:
        of: What was measured.
        an_hour: Its growth in an hour.
        least: The lower end of the interval that holds the true growth with 95 %.
        leaks: Whether the growth over the time looked at is beyond doubt and beyond `LIMITS`.
    """

    of: str
    an_hour: float
    least: float
    leaks: bool


class Looking:
    """Takes looks.

    From the first of them on, ``malloc`` gives memory at the end of a thread's arena back as soon as it is free. By
    itself glibc raises that threshold with each large block, up to 64 MiB, and ``malloc_trim`` leaves those ends alone:
    resident memory would be the highest that was ever needed at once, and creep up for hours without a leak.

    Args:
        scratch: The folder whose files are counted.
    """

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._began = time.monotonic()
        self._threads = _listed("task")
        self._libc = ctypes.CDLL(None)
        self._libc.mallinfo2.restype = _Mallinfo2
        for parameter in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
            self._libc.mallopt(parameter, _FIRST_THRESHOLD)

    def look(self) -> Look:
        """Collect garbage, let threads that were asked to end do so, and look."""
        gc.collect()
        self._libc.malloc_trim(0)
        self._settle()
        heap = self._libc.mallinfo2()
        memory = _memory()
        return Look(
            seconds=time.monotonic() - self._began,
            descriptors=_listed("fd") - 1,
            threads=_listed("task"),
            files=sum(1 for _ in self._scratch.rglob("*")),
            resident_bytes=memory["Rss"],
            anonymous_bytes=memory["Anonymous"],
            heap_bytes=heap.uordblks + heap.hblkhd,
            python_blocks=sys.getallocatedblocks(),
        )

    def _settle(self) -> None:
        """The system may count a thread for a moment longer than it can be joined."""
        deadline = time.monotonic() + _SETTLING_SECONDS
        while _listed("task") > self._threads and time.monotonic() < deadline:
            time.sleep(0.005)


def _listed(folder: str) -> int:
    """Return how many entries a folder of this process has in /proc."""
    return len(os.listdir(f"/proc/self/{folder}"))  # noqa: PTH208 - a Path would make objects of all


def _memory() -> dict[str, int]:
    """Return the sums over all mappings, in bytes."""
    sums = {}
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]:
        name, size = line.split(":")
        sums[name] = int(size.split()[0]) << 10
    return sums


def growing(looks: Sequence[Look], name: str) -> str | None:
    """Say how a count has grown since the first look, if it has."""
    first, last = getattr(looks[0], name), getattr(looks[-1], name)
    return f"{name}: {first} at first, {last} at the end" if last > first else None


def trend(looks: Sequence[Look], name: str) -> Trend:
    """Fit a line by least squares.

    The interval is that of the slope of a linear regression, with the residuals' own standard deviation.
    """
    if len(looks) < 4:  # a line takes two, and its error more
        return Trend(name, 0.0, 0.0, leaks=False)
    hours = np.array([look.seconds / 3600 for look in looks])
    values = np.array([getattr(look, name) for look in looks], np.float64)
    centred = hours - hours.mean()
    spread = float(centred @ centred)
    slope = float(centred @ values) / spread
    residuals = values - values.mean() - slope * centred
    error = math.sqrt(float(residuals @ residuals) / (len(looks) - 2) / spread)
    least = slope - 1.96 * error
    span = float(hours[-1] - hours[0])
    return Trend(name, slope, least, leaks=least * span > LIMITS[name])


def memory_trends(looks: Sequence[Look]) -> tuple[list[Trend], list[str]]:
    """Fit a line to each kind of memory behind the warm-up; return the lines, and what those that leak say."""
    warm = [look for look in looks if look.seconds > WARM_UP_SECONDS]
    trends = [trend(warm, name) for name in MEASURED]
    return trends, [f"{trend.of}: at least {trend.least:,.0f} more in an hour" for trend in trends if trend.leaks]


THREADS = 3
USES_A_ROUND = 6
WARM_UP_SECONDS = 600.0
LEAST_ROUNDS = 8
PRINT_SECONDS = 30.0


def damaged_copy(dataset: str, folder: Path) -> Path:
    """A copy of a dataset with a byte of a payload changed."""
    shutil.copytree(dataset, folder)
    shard = stoker.open(folder, "train").shards[-1].local_path
    content = bytearray(shard.read_bytes())
    content[-100] ^= 1
    shard.write_bytes(content)
    return folder


def use_many(workload: Workload, seed: int, errors: list[BaseException]) -> None:
    """What one thread does in a round."""
    random = Random(seed)
    try:
        for _ in range(USES_A_ROUND):
            random.choice(USES)(workload, random)
    except BaseException as error:  # noqa: BLE001 - the main thread raises it
        errors.append(error)


def run_round(workload: Workload, number: int) -> None:
    """Run the threads of one round.

    Raises:
        BaseException: What one of them raised.
    """
    errors: list[BaseException] = []
    threads = [
        threading.Thread(target=use_many, args=(workload, number * THREADS + nth, errors), daemon=nth == 0)
        for nth in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def soak(workload: Workload, seconds: float) -> list[Look]:
    """Run rounds for so long; return the looks behind them."""
    looking, looks = Looking(workload.scratch), []
    began = printed = time.monotonic()
    number = 0
    while time.monotonic() - began < seconds or number < LEAST_ROUNDS:
        run_round(workload, number)
        number += 1
        looks.append(looking.look())
        if time.monotonic() - printed > PRINT_SECONDS:
            printed = time.monotonic()
            print_looks(workload, looks, seconds - (printed - began))
    return looks


def print_looks(workload: Workload, looks: list[Look], left: float) -> None:
    """One line of progress."""
    look = looks[-1]
    print(
        f"{look.seconds:7.0f} s  {len(looks):6} rounds  {workload.samples:9,} samples  "
        f"{workload.samples / look.seconds:7,.0f} a second  {look.descriptors} files  {look.threads} threads  "
        f"{look.resident_bytes / 2**20:.1f} MiB resident  {look.heap_bytes / 2**20:.2f} MiB heap  ETA {left:.0f} s",
        file=sys.stderr, flush=True,
    )  # fmt: skip


def judge(workload: Workload, looks: list[Look]) -> dict[str, Any]:
    """Say what has grown."""
    settled = looks[2:]
    trends, growth = memory_trends(settled)
    leaks = [leak for name in COUNTED if (leak := growing(settled, name))] + growth
    return {
        "seconds": looks[-1].seconds,
        "rounds": len(looks),
        "uses": len(looks) * THREADS * USES_A_ROUND,
        "samples": workload.samples,
        "first": asdict(settled[0]),
        "last": asdict(settled[-1]),
        "trends": [asdict(trend) for trend in trends],
        "leaks": leaks,
    }


def run(dataset: str, seconds: float) -> dict[str, Any]:
    """Soak a dataset for so long; return what was found."""
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        scratch = Path(folder, "scratch")
        scratch.mkdir()
        workload = Workload(dataset, damaged_copy(dataset, Path(folder, "damaged")), scratch)
        return judge(workload, soak(workload, seconds))


def main() -> int:
    """Soak, and print; 1 if something leaks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--json", type=Path, help="where the result goes")
    args = parser.parse_args()
    result = run(args.dataset, 60 * args.minutes) | {"pid": os.getpid()}
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{result['rounds']:,} rounds, {result['uses']:,} uses, {result['samples']:,} samples")
    for trend in result["trends"]:
        print(f"{trend['of']:>16}: {trend['an_hour']:+12,.0f} an hour, at least {trend['least']:+12,.0f}")
    for leak in result["leaks"]:
        print(f"LEAK {leak}")
    return int(bool(result["leaks"]))


if __name__ == "__main__":
    sys.exit(main())

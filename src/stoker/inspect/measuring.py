"""Measuring speeds for ``stoker bench``, ``stoker doctor`` and the benchmarks: timed batches, cases in turns.

A case is a function, or a program that is stopped except in its turns. A program warms up, prints one line of JSON, and
then answers each line ``SECONDS`` on its standard input with one line of JSON: ``images``, ``seconds`` and
``cpu_seconds`` of what it read in that time.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import mmap
import os
import select
import signal
import statistics
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np

from stoker import _native
from stoker.config import check_range, check_seconds
from stoker.errors import ConfigError
from stoker.loader import Loader
from stoker.transforms import CenterCrop, RandomResizedCrop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import IO, Self

    from stoker.format import RecordKeys
    from stoker.loader import Batch, Dataset, Mix
    from stoker.sources import SourceOptions
    from stoker.types import DecodeMode

T = TypeVar("T")
TransformName = Literal["train", "eval"]

SIDE = 224
RESIZE = 256
_ANSWER_SECONDS = 600.0
"""The most for a warm-up, or for an answer beyond the seconds of its turn; a program that takes longer hangs."""
_WARM_UP_SECONDS = 1.0
_LEAST_BATCHES = 2
_LEAD_IN = 0.1
_IS_WAITING = 0.2
_ANY_NUMBER = 2**31
_MOST_LEFT = 0.1
"""Share of the bytes that may stay cached in cold measurements; other programs may be reading the files, too."""


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """What is read and how, in every measurement."""

    dataset: str  # anything that `stoker.open` opens
    split: str | None = None  # its split; None: the only one, or ``train``
    # ``train``: random order, random crop resized to 224 with flips. ``eval``: in order, shorter side 256, centre
    # 224. Both are bilinear, uint8
    transform: TransformName = "train"
    batch_size: int = 64
    threads: int | None = None  # number of threads; None: as many as a loader starts
    seconds: float = 1.0
    cold: bool = False  # whether files are dropped from the page cache first
    keys: RecordKeys | None = None  # keys of TFRecords of other origin
    source: SourceOptions | None = None  # options for images that are not built

    def __post_init__(self) -> None:
        check_range("--batch-size", self.batch_size, 1, 2**16)
        check_seconds(self.seconds)
        if self.threads is not None:
            check_range("--threads", self.threads, 1, 4096)
        if self.transform not in get_args(TransformName):
            raise ConfigError(f"transform is {self.transform!r}; it must be {' or '.join(get_args(TransformName))}")

    @property
    def is_shuffled(self) -> bool:
        """Whether every epoch has an order of its own."""
        return self.transform == "train"

    @property
    def crop(self) -> RandomResizedCrop | CenterCrop:
        """The transform of a loader."""
        return RandomResizedCrop(SIDE, hflip=0.5) if self.transform == "train" else CenterCrop(SIDE, RESIZE)


class Meter:
    """Reads batches and times them; ``batches`` yields the number of images of each batch, without end."""

    def __init__(self, batches: Iterator[int]) -> None:
        self._batches = batches
        self._batch_seconds = 0.0  # as last measured

    def warm_up(self, seconds: float, images: int = 0) -> None:
        """Read for ``seconds``, a second at most, and at least ``images``."""
        seconds = min(seconds, _WARM_UP_SECONDS)
        began, read = time.perf_counter(), 0
        while time.perf_counter() - began < seconds or read < images:
            read += next(self._batches)
        self.measure(seconds / 2)

    def lead_in(self, seconds: float) -> None:
        """Use up prefetched batches, until one has to be waited for, and get threads going that were stopped."""
        began = before = time.perf_counter()
        while (now := time.perf_counter()) - began < seconds:
            if now - began >= _LEAD_IN * seconds and now - before >= _IS_WAITING * self._batch_seconds:
                break
            before = now
            next(self._batches)

    def measure(self, seconds: float, images: int | None = None) -> dict[str, Any]:
        """Read for at least ``seconds`` and two batches, or until ``images`` were read."""
        cpu, read, batches = time.process_time(), 0, 0
        began = time.perf_counter()
        while (elapsed := time.perf_counter() - began) < seconds or batches < _LEAST_BATCHES:
            if images is not None and read >= images:
                break
            read += next(self._batches)
            batches += 1
        self._batch_seconds = elapsed / batches
        return {"images": read, "seconds": elapsed, "cpu_seconds": time.process_time() - cpu}

    def rate(self, seconds: float) -> float:
        """Read for at least ``seconds``, and return images per second."""
        measured = self.measure(seconds)
        return float(measured["images"] / measured["seconds"])


def loader_alone(data: Dataset | Mix, **settings: Any) -> Loader:
    """Return a loader for this process alone, which replaces samples that cannot be loaded by others."""
    usual: dict[str, Any] = {"rank": 0, "world_size": 1, "seed": 0, "on_bad": "substitute", "max_bad": _ANY_NUMBER}
    return Loader(data, **usual | settings)


def endless(loader: Loader) -> Iterator[Batch]:
    """Yield the batches of one epoch after the other."""
    while True:
        yield from loader


class ProgramFailed(Exception):  # noqa: N818 - it says what happened
    """A program ended or does not answer; the message is the last line it printed."""


class Program:
    """A running program, stopped except while it warms up or has its turn.

    Its standard error goes to ``log``, an empty binary file that is closed with it.
    """

    def __init__(self, command: Sequence[str], log: IO[bytes], environment: Mapping[str, str] | None = None) -> None:
        self._log = log
        self._process = subprocess.Popen(  # noqa: S603 - a program of ours
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
            process_group=0,  # so that its workers are stopped and ended with it
        )
        self.pid = self._process.pid  # also the id of its process group
        self.ready: dict[str, Any] = {}  # what it printed when it had warmed up

    def wait_until_ready(self) -> None:
        """Wait until it has warmed up."""
        self.ready = self._answer(_ANSWER_SECONDS)
        self._signal(signal.SIGSTOP)

    def take_turn(self, seconds: float) -> dict[str, Any]:
        """Let it read for so long, and return its answer."""
        assert self._process.stdin is not None
        self._signal(signal.SIGCONT)
        with suppress(BrokenPipeError):  # it has ended, as the missing answer will tell
            self._process.stdin.write(f"{seconds}\n")
            self._process.stdin.flush()
        answer = self._answer(_ANSWER_SECONDS + 10 * seconds)
        self._signal(signal.SIGSTOP)
        return answer

    def end(self) -> None:
        """End it and all processes of its group."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _answer(self, seconds: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            raise ProgramFailed(f"it did not answer for {seconds:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
            self._log.seek(0)
            lines = self._log.read().decode("utf-8", "replace").split("\n")
            printed = [text.strip() for text in lines if text.strip()]
            raise ProgramFailed(
                printed[-1] if printed else f"it ended with code {self._process.poll()} and printed nothing"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it has ended, and its workers too
            os.killpg(self.pid, number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            with suppress(BrokenPipeError):
                pipe.close()  # type: ignore[union-attr]


def in_turns(
    cases: Mapping[str, Callable[[float], T]],
    rounds: int,
    seconds: float,
    on_turn: Callable[[int, int, str], None] = lambda *_: None,
    failed: Callable[[str, ProgramFailed], None] | None = None,
) -> dict[str, list[T]]:
    """Measure each case once a round, so that a drifting machine favours none; return the results of each.

    ``on_turn`` is called before each turn with its number, the number of turns, and the name of its case; ``failed``
    with the name of a program that failed, and the error: its results are dropped. Without ``failed`` it is raised.
    """
    results: dict[str, list[T]] = {name: [] for name in cases}
    turns = itertools.count()
    for _ in range(rounds):
        for name in tuple(results):
            on_turn(next(turns), rounds * len(cases), name)
            try:
                results[name].append(cases[name](seconds))
            except ProgramFailed as failure:
                if failed is None:
                    raise
                del results[name]
                failed(name, failure)
    return results


def median_ratio(rates: Sequence[float], others: Sequence[float]) -> float:
    """Return the median over the rounds of the ratio of two rates of the same round."""
    return statistics.median(mine / other for mine, other in zip(rates, others, strict=True))


def decode_endlessly(
    images: Sequence[bytes],
    transform: RandomResizedCrop | CenterCrop,
    threads: int,
    size: int,
    *,
    decode: DecodeMode = "exact",
    seed: int | None = None,
) -> Iterator[int]:
    """Decode and resize images from memory, ``size`` at a time; yield the size of each run, which has new threads.

    ``seed`` draws the order of each epoch; None keeps the order of the images.
    """
    count, epoch = len(images), 0
    order = in_order = np.arange(count, dtype=np.uint64)
    native = transform.native()
    while True:
        while len(order) < size:
            epoch += 1
            numbers = in_order if seed is None else _native.permute(0, count, count, seed, epoch)
            order = np.concatenate([order, numbers])
        _native.decode_loop(
            images=images,
            indices=order[:size],
            transform=native,
            seed=seed or 0,
            epoch=epoch,
            threads=threads,
            decode=decode,
        )
        order = order[size:]
        yield size


# The page cache, from which any user can drop files.


def files_of(dataset: Dataset, most: int | None = None) -> list[Path]:
    """Return the files that are read: for a compressed shard its inflated file; of very many images about ``most``."""
    if dataset.remote is not None:
        raise ConfigError(f"{dataset.path} is in a store, and in no page cache of this machine; measure without --cold")
    if dataset.shards:
        return [shard.local_path if shard.inflated is None else shard.inflated.path for shard in dataset.shards]
    numbers = dataset.numbers[:: 1 if most is None else max(1, len(dataset) // most)]
    return list(dict.fromkeys(Path(dataset.records.where(int(number))[0]) for number in numbers))


def drop_from_page_cache(paths: Iterable[Path]) -> float:
    """Ask the system to drop files from the page cache; return the share of their bytes that is still there."""
    if not hasattr(os, "posix_fadvise"):
        raise ConfigError(
            "this system has no posix_fadvise, so its page cache cannot be emptied; measure without --cold"
        )
    cached = total = 0
    for path in paths:
        with path.open("rb", buffering=0) as file:
            os.fsync(file.fileno())  # what is not on the disk yet cannot be dropped
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        held, size = cached_bytes(path)
        cached, total = cached + held, total + size
    return cached / total if total else 0.0


def require_cold(paths: Sequence[Path]) -> None:
    """Drop files from the page cache; raise `ConfigError` if too much stays for cold measurements."""
    if not paths:
        raise ConfigError("nothing that is chosen reads files of this machine; measure without --cold")
    share = drop_from_page_cache(paths)
    if share > _MOST_LEFT:
        why = "their file system keeps them there, as tmpfs does, or another program uses them"
        raise ConfigError(
            f"{share:.0%} of the files stay in memory: {why}; move the dataset, prepare elsewhere with TMPDIR, "
            "or measure without --cold"
        )


def cached_bytes(path: Path) -> tuple[int, int]:
    """Return how many bytes of a file are in the page cache, by ``mincore``, and how many it has."""
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            return 0, 0
        mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
    present = np.zeros(-(-size // mmap.PAGESIZE), np.uint8)
    with mapped:  # writable (copy-on-write), because ctypes takes the address of writable memory only
        start = ctypes.c_char.from_buffer(mapped)
        system = ctypes.CDLL(None, use_errno=True)
        address, length = ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(size)
        failed = system.mincore(address, length, present.ctypes.data_as(ctypes.c_void_p))
        del start  # it holds the mapping open
    if failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return min(size, int(np.count_nonzero(present & 1)) * mmap.PAGESIZE), size

"""Loops with one thing wrong, and the same loops with the remedy: what `benchmarks.planted` measures."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import stoker
from stoker.storage.page_cache import drop_from_page_cache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
MORE = {"threads": 8}


@dataclass(frozen=True)
class Way:
    """A loader and what is done with its batches.

    Attributes:
        dataset: What is read.
        step: Done with each batch.
        settings: Of the loader, over the usual ones.
        around: Entered before the loop, and left after it.
        one_epoch: Whether the loop is over after one epoch.
    """

    dataset: str
    step: Callable[[Any], object]
    settings: dict[str, Any] = field(default_factory=dict)
    around: Callable[[], AbstractContextManager[object]] = nullcontext
    one_epoch: bool = False


@dataclass(frozen=True)
class Plant:
    """One thing that is wrong.

    Attributes:
        name: What it is.
        verdict: What the doctor must say.
        before: With it.
        after: With the remedy.
        applied: What the remedy was, in a few words.
        input_only: The loop as it was, with a faster input, where that is not the remedy.
    """

    name: str
    verdict: str
    before: Way
    after: Way
    applied: str
    input_only: Way | None = None


def nothing(_: Any) -> None:
    """A loop that only takes batches."""


def sleep(seconds: float) -> Callable[[Any], None]:
    """A step on a device: this thread has nothing to do meanwhile."""

    def step(_: Any) -> None:
        time.sleep(seconds)

    return step


def normalise_each(batch: Any) -> np.ndarray[Any, Any]:
    """What many loops do: image by image, on one thread."""
    made = [((image / 255.0 - MEAN) / STD).astype(np.float32).transpose(2, 0, 1) for image in batch.images]
    return np.stack(made)


def histogram_in_python(batch: Any) -> list[int]:
    """Book-keeping that is written in plain Python."""
    return count_numbers([int(label) for label in batch.labels] * 20_000)


def count_numbers(numbers: list[int]) -> list[int]:
    """How often each number is there."""
    counts = [0] * 1000
    for number in numbers:
        counts[number % 1000] += 1
    return counts


def histogram_in_numpy(batch: Any) -> np.ndarray[Any, Any]:
    """The same, vectorised."""
    return np.bincount(np.tile(batch.labels, 20_000) % 1000, minlength=1000)


def small_operations(batch: Any) -> None:
    """A step of many short operations, each of which releases the interpreter's lock and takes it again."""
    for _ in range(100):
        np.sqrt(batch.images.astype(np.float32))


@contextmanager
def spinning() -> Iterator[None]:
    """A thread that does something else in Python all the time."""
    over = threading.Event()

    def write_logs() -> None:
        lines = 0
        while not over.is_set():
            lines += 1

    thread = threading.Thread(target=write_logs, name="log-writer")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def spinning_elsewhere() -> Iterator[None]:
    """The same in a process of its own."""
    process = subprocess.Popen([sys.executable, "-c", "lines = 0\nwhile True: lines += 1"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def shards_of(dataset: str) -> list[Path]:
    """The files of a dataset."""
    return [shard.local_path for shard in stoker.open(dataset, split="train").shards]


def dropped(dataset: str) -> Callable[[], AbstractContextManager[object]]:
    """Before: the shards are not in memory."""

    @contextmanager
    def around() -> Iterator[None]:
        drop_from_page_cache(shards_of(dataset))
        yield

    return around


def read_first(dataset: str) -> Callable[[], AbstractContextManager[object]]:
    """After: they are not, and are read in one go, as ``cat`` does."""

    @contextmanager
    def around() -> Iterator[None]:
        shards = shards_of(dataset)
        drop_from_page_cache(shards)
        subprocess.run(["cat", *map(str, shards)], stdout=subprocess.DEVNULL, check=True)
        yield

    return around


def plants(jpeg: str, remote: str | None) -> list[Plant]:
    """The plants of this process.

    Args:
        jpeg: A dataset of JPEGs.
        remote: A copy of the first in a store; None where there is none.
    """
    one, fast = {"threads": 1}, {"decode": "fast"}
    floats = {"output": stoker.Output("float32", "NCHW", MEAN, STD)}
    found = [
        Plant("small thread count", "thread-bound", Way(jpeg, nothing, one), Way(jpeg, nothing), "threads= left out"),
        Plant(
            "heavy consumer",
            "consumer-bound",
            Way(jpeg, sleep(0.2)),
            Way(jpeg, sleep(0.1)),
            "a step twice as fast",
            Way(jpeg, sleep(0.2), fast),
        ),
        Plant(
            "slow user transform",
            "transform-bound",
            Way(jpeg, normalise_each, {"view": stoker.RandomResizedCrop(224), "decode": "fast", "prefetch": 4}),
            Way(jpeg, nothing, {"view": stoker.RandomResizedCrop(224), "decode": "fast", "prefetch": 4} | floats),
            "the loader's float output",
        ),
        Plant(
            "GIL held by another thread",
            "gil-bound",
            Way(jpeg, small_operations, around=spinning),
            Way(jpeg, small_operations, around=spinning_elsewhere),
            "the thread as a process",
        ),
        Plant(
            "GIL held by the consumer",
            "gil-bound",
            Way(jpeg, histogram_in_python),
            Way(jpeg, histogram_in_numpy),
            "the function vectorised",
        ),
    ]
    if remote is not None:
        few, many = ({"read_ahead": stoker.ReadAhead("4MB", count)} for count in (4, 16))
        found.append(
            Plant(
                "slow store", "storage-bound", Way(remote, nothing, few), Way(remote, nothing, many), "16 connections"
            )
        )
    return found


def plant_of_a_slow_disk(kind: str, dataset: str) -> Plant:
    """The plant of a process with slow reads."""
    if kind == "always":
        return Plant("slow disk", "storage-bound", Way(dataset, nothing), Way(dataset, nothing, MORE), "threads=8")
    pixels = {"view": stoker.RawTensor(256), "batch_size": 16}
    return Plant(
        "cold cache",
        "cold-cache",
        Way(dataset, nothing, pixels, dropped(dataset), one_epoch=True),
        Way(dataset, nothing, pixels, read_first(dataset), one_epoch=True),
        "cat SHARDS > /dev/null before the epoch",
    )

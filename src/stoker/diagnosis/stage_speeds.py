"""Stages of a loader's work, each by itself."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker import _native
from stoker.diagnosis.trials import SAMPLE_BYTES
from stoker.errors import StokerError
from stoker.storage import stoppable_pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.feed import Dataset
    from stoker.views import CenterCrop, RandomResizedCrop

_MOST_IMAGES = 512
_REMOTE_READERS = 32
_LEAST_SLICE = 32
_PER_THREAD = 16
"""Images that each thread has at a time: with fewer, threads would stand idle at the end of each slice."""


def _timed(images: Iterator[int], seconds: float) -> float:
    began, count = time.perf_counter(), 0
    for some in images:
        count += some
        if time.perf_counter() - began > seconds:
            break
    return count / (time.perf_counter() - began)


def reading_speed(dataset: Dataset, threads: int, seconds: float) -> float:
    """Return records or files read a second, in random order.

    Args:
        dataset: Whose they are.
        threads: That read, at a disk; a store gets more.
        seconds: Time, unless all are read before that.
    """
    readers = threads if dataset.remote is None else _REMOTE_READERS
    order = np.random.default_rng(0).permutation(len(dataset))
    ends = time.perf_counter() + seconds

    def read(numbers: np.ndarray[Any, Any]) -> int:
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


def decoding_speed(
    dataset: Dataset, view: RandomResizedCrop | CenterCrop, threads: int, seconds: float
) -> float | None:
    """Return images decoded and resized a second, from memory; None where they are no JPEGs.

    Args:
        dataset: Whose images these are; some of them, read one by one beforehand.
        view: What is made of them.
        threads: Decoding threads.
        seconds: The most time for reading them, and the time for decoding, as often as there is time for.
    """
    images = _images(dataset, seconds)
    size = max(_LEAST_SLICE, _PER_THREAD * threads)

    def run(first: int) -> int:
        keys = (np.arange(first, first + size) % len(images)).astype(np.uint64)
        _native.codec_loop(images=images, keys=keys, view=view.native(), seed=0, epoch=first, threads=threads)
        return size

    try:
        run(0)
        return _timed(map(run, itertools.count(size, size)), seconds)
    except StokerError:
        return None


def _images(dataset: Dataset, seconds: float) -> list[bytes]:
    """Return some of the images, at least one, and no more than there is time and memory for."""
    ends, images, held = time.perf_counter() + seconds, [], 0
    for number in range(0, len(dataset), max(1, len(dataset) // _MOST_IMAGES)):
        images.append(dataset[number].encoded)
        held += len(images[-1])
        if len(images) == _MOST_IMAGES or held > SAMPLE_BYTES or time.perf_counter() > ends:
            break
    return images

"""Stoker's loader over each form of the images and over the user's data where they lie; and its codec alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.inspect.bench.cases import SEED
from stoker.inspect.bench.images import ImageList
from stoker.loader import Loader, MemoryCache, NodeCache, open_dataset
from stoker.sources import SourceOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.inspect.bench.cases import Task
    from stoker.loader import Dataset

_MOST_IMAGES = 4096  # kept in memory by the codec alone; enough that the processor's caches do not help
_IMAGES_A_RUN = 512  # of the codec: its threads are started anew each run, so a run is long compared with that
_CACHE_BUDGET = 2**40  # whether there is enough memory was checked before
_ANY_NUMBER = 2**31
_OWN = ("own", "node-cache")


def batches(task: Task, form: str) -> Iterator[int]:
    """Read epoch after epoch; yield the images of each batch."""
    if form == "codec":
        yield from _codec_alone(task)
    with Loader(
        _dataset(task, form),
        batch_size=task.batch_size,
        transform=task.stoker_transform,
        decode="fast" if form == "fast" else "exact",
        shuffle=task.is_shuffled,
        seed=SEED,
        threads=task.threads,
        tail="wrap",
        rank=0,
        world_size=1,
        cache=_cache(task, form),
        # Only the user's own data may hold images that cannot be decoded.
        on_bad="substitute" if form in _OWN else "raise",
        max_bad=_ANY_NUMBER,
    ) as loader:
        while True:
            for batch in loader:
                yield len(batch)


def _dataset(task: Task, form: str) -> Dataset:
    if form in _OWN:
        return ImageList.read(task).open_own()
    boxes = str(task.place("boxes.csv")) if task.transform == "objects" else None
    folder = form if form in ("files", "gzip", "restart", "raw") else "plain"
    return open_dataset(task.place(folder), "train", source=SourceOptions(boxes=boxes))


def _cache(task: Task, form: str) -> MemoryCache | NodeCache | None:
    if form == "cache":
        return MemoryCache(_CACHE_BUDGET, keep="decoded")
    return NodeCache(task.place("node-cache"), _CACHE_BUDGET) if form == "node-cache" else None


def _codec_alone(task: Task) -> Iterator[int]:
    """Decode and resize the regions that the loader decodes, from memory, in the loader's order, run after run."""
    dataset = open_dataset(task.place("plain"), "train")
    images = [dataset[i].encoded for i in range(min(len(dataset), _MOST_IMAGES))]
    size, transform = len(images), task.stoker_transform.native()
    epochs = -(-_IMAGES_A_RUN // size)  # in a pass, or few images would make short runs
    epoch = 0
    while True:
        numbers = range(epoch, epoch + epochs)
        in_order = np.arange(size, dtype=np.uint64)
        order = np.concatenate(
            [_native.permute(0, size, size, SEED, number) if task.is_shuffled else in_order for number in numbers]
        )
        for start in range(0, len(order), _IMAGES_A_RUN):
            indices = order[start : start + _IMAGES_A_RUN]
            _native.decode_loop(
                images=images, indices=indices, transform=transform, seed=SEED, epoch=epoch, threads=task.threads
            )
            yield len(indices)
        epoch += epochs

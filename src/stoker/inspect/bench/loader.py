"""Stoker's own loader over each form of the images, and over the user's data where they lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.inspect.bench.cases import SEED
from stoker.inspect.bench.images import ImageList
from stoker.loader import Loader, MemoryCache, NodeCache, open_dataset
from stoker.sources import SourceOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.inspect.bench.cases import Task
    from stoker.loader import Dataset

_CACHE_BUDGET = 2**40  # whether there is enough memory was checked before
_ANY_NUMBER = 2**31
_OWN = ("own", "node-cache")


def batches(task: Task, form: str) -> Iterator[int]:
    """Read epoch after epoch; yield the images of each batch."""
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

"""Stoker's own loader over each form of the images, and over the user's data where they lie."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stoker.feed import Loader, MemoryCache, NodeCache, open_dataset
from stoker.measure.selection import Selection, made_by
from stoker.measure.task import SEED
from stoker.sources import SourceOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.feed import Dataset
    from stoker.measure.task import Task

_CACHE_BUDGET = 2**40  # whether there is room was asked before
_ANY_NUMBER = 2**31
_OWN = ("own", "node-cache")
_PREPARED = ("files", "gzip", "restart", "raw")


def batches(task: Task, form: str) -> Iterator[int]:
    """Read epoch after epoch."""
    with Loader(
        _dataset(task, form),
        batch_size=task.batch_size,
        view=task.stoker_view,
        decode="fast" if form == "fast" else "exact",
        shuffle=task.is_shuffled,
        seed=SEED,
        threads=task.threads,
        tail="wrap",
        rank=0,
        world_size=1,
        cache=_cache(task, form),
        # Only what lies at the user's may hold images that others have left out.
        on_bad="substitute" if form in _OWN else "raise",
        max_bad=_ANY_NUMBER,
    ) as loader:
        while True:
            for batch in loader:
                yield len(batch)


def _dataset(task: Task, form: str) -> Dataset:
    if form in _OWN:
        return Selection.read(Path(task.data)).open()
    boxes = str(task.place("boxes.csv")) if task.view == "objects" else None
    place = task.place(form if form in _PREPARED else "plain")
    return open_dataset(place, "train", source=SourceOptions(boxes=boxes))


def _cache(task: Task, form: str) -> MemoryCache | NodeCache | None:
    if form == "cache":
        return MemoryCache(_CACHE_BUDGET, keep="decoded")
    if form == "node-cache":
        return NodeCache(made_by("stoker-node-cache", task), _CACHE_BUDGET)
    return None

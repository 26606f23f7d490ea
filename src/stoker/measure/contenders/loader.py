"""Stoker's own loader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.feed import Loader, open_dataset
from stoker.measure.task import SEED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.measure.task import Task


def batches(task: Task) -> Iterator[int]:
    """Read epoch after epoch."""
    dataset = open_dataset(task.dataset, task.split)
    shuffle = task.view == "train"
    with Loader(
        dataset,
        batch_size=task.batch_size,
        view=task.stoker_view,
        shuffle=shuffle,
        seed=SEED,
        threads=task.threads,
        tail="wrap",
        rank=0,
        world_size=1,
    ) as loader:
        while True:
            for batch in loader:
                yield len(batch)

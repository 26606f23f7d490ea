"""The codec alone: the regions the loader decodes, from memory, with nothing around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.feed import open_dataset
from stoker.measure.task import SEED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.measure.task import Task

_MOST_IMAGES = 4096  # held in memory; enough that the processor's caches do not help
_IMAGES_A_RUN = 512  # threads are started anew each run, so a run is long compared with that


def batches(task: Task, _form: str) -> Iterator[int]:
    """Decode and resize, run after run, in the loader's order."""
    dataset = open_dataset(task.place("plain"), "train")
    images = [dataset[i].encoded for i in range(min(len(dataset), _MOST_IMAGES))]
    run = min(len(images), _IMAGES_A_RUN)
    view = task.stoker_view.native()
    epoch = 0
    while True:
        order = _native.permute(0, len(images), len(images), SEED, epoch)
        if not task.is_shuffled:
            order = np.arange(len(images), dtype=np.uint64)
        for start in range(0, len(images), run):
            keys = order[start : start + run]
            _native.codec_loop(images=images, keys=keys, view=view, seed=SEED, epoch=epoch, threads=task.threads)
            yield len(keys)
        epoch += 1

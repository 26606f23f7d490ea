"""The codec alone: the regions the loader decodes, from memory, with nothing around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.feed import open_dataset
from stoker.measure.task import SEED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from stoker.measure.task import Task

_MOST_IMAGES = 4096  # held in memory; enough that the processor's caches do not help
_IMAGES_A_RUN = 512  # threads are started anew each run, so a run is long compared with that


def batches(task: Task, _form: str) -> Iterator[int]:
    """Decode and resize, run after run, in the loader's order."""
    dataset = open_dataset(task.place("plain"), "train")
    images = [dataset[i].encoded for i in range(min(len(dataset), _MOST_IMAGES))]
    view = task.stoker_view.native()
    epochs = -(-_IMAGES_A_RUN // len(images))  # in a pass, or few images would make short runs
    epoch = 0
    while True:
        passes = [_order(task, len(images), epoch + number) for number in range(epochs)]
        order = np.concatenate(passes)
        for start in range(0, len(order), _IMAGES_A_RUN):
            keys = order[start : start + _IMAGES_A_RUN]
            _native.codec_loop(images=images, keys=keys, view=view, seed=SEED, epoch=epoch, threads=task.threads)
            yield len(keys)
        epoch += epochs


def _order(task: Task, size: int, epoch: int) -> NDArray[np.uint64]:
    return _native.permute(0, size, size, SEED, epoch) if task.is_shuffled else np.arange(size, dtype=np.uint64)

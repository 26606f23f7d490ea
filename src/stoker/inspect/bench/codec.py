"""The codec alone: the regions the loader decodes, from memory, with nothing around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.inspect.bench.cases import SEED
from stoker.loader import open_dataset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.inspect.bench.cases import Task

_MOST_IMAGES = 4096  # kept in memory; enough that the processor's caches do not help
_IMAGES_A_RUN = 512  # threads are started anew each run, so a run is long compared with that


def batches(task: Task, _form: str) -> Iterator[int]:
    """Decode and resize, run after run, in the loader's order; yield the images of each run."""
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

"""Threads of Python that share a dataset, each with a loader of its own; with and without the GIL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

import stoker
from loader.shards import write_shards

if TYPE_CHECKING:
    from pathlib import Path

THREADS = 4


def test_threads_that_share_a_dataset_get_the_same_batches(tmp_path: Path) -> None:
    train = stoker.open(write_shards(tmp_path, 20, 2)[0].parent)

    def pixels(seed: int) -> list[np.ndarray]:
        transform = stoker.RandomResizedCrop(16)
        with stoker.Loader(train, 8, transform=transform, shuffle=True, seed=seed, threads=2) as loader:
            return [batch.images for _ in range(2) for batch in loader]

    alone = [pixels(seed) for seed in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        together = list(pool.map(pixels, range(THREADS)))
    for images, other in zip(alone, together, strict=True):
        assert len(images) == 6
        assert all(map(np.array_equal, images, other))

"""PyTorch's DataLoader with worker processes and Pillow: what most training scripts do."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from stoker.feed import open_dataset
from stoker.measure.contenders.pillow import transform

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.measure.task import Task


class _Images(torch.utils.data.Dataset[Any]):
    """One record a call."""

    def __init__(self, task: Task) -> None:
        self._view = task.view
        self._dataset = open_dataset(task.dataset, task.split)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        sample = self._dataset[index]
        chance = random.Random(torch.initial_seed() + index)  # noqa: S311 - crops are no secret
        pixels = np.ascontiguousarray(transform(sample.encoded, self._view, chance))
        return torch.from_numpy(pixels), sample.label


class _EndlessOrder(torch.utils.data.Sampler[int]):
    """Epoch after epoch in one go, so that workers never wait for an epoch to end."""

    def __init__(self, task: Task, size: int) -> None:
        self._shuffle = task.view == "train"
        self._size = size

    def __iter__(self) -> Iterator[int]:
        while True:
            yield from (torch.randperm(self._size) if self._shuffle else torch.arange(self._size)).tolist()


def batches(task: Task) -> Iterator[int]:
    """Read without end with as many worker processes as others have threads."""
    torch.set_num_threads(1)
    images = _Images(task)
    loader = torch.utils.data.DataLoader(
        images,
        batch_size=task.batch_size,
        sampler=_EndlessOrder(task, len(images)),
        num_workers=task.threads,
        prefetch_factor=4,
    )
    for _, labels in loader:
        yield len(labels)

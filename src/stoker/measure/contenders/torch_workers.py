"""PyTorch's DataLoader with worker processes and Pillow over loose files: what most training scripts do."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from stoker.measure.contenders.python_files import view_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stoker.measure.task import Task

PREFETCH = 4
"""Batches that each worker makes ahead."""


class _Images(torch.utils.data.Dataset[Any]):
    """One file a call."""

    def __init__(self, task: Task) -> None:
        self._view = task.view
        self._files = task.files()

    def __len__(self) -> int:
        return len(self._files.paths)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return tensor_of(self._files.paths[index], self._view), self._files.labels[index]


class _EndlessOrder(torch.utils.data.Sampler[int]):
    """Epoch after epoch in one go, so that workers never wait for an epoch to end."""

    def __init__(self, task: Task, size: int) -> None:
        self._shuffle = task.is_shuffled
        self._size = size

    def __iter__(self) -> Iterator[int]:
        while True:
            yield from (torch.randperm(self._size) if self._shuffle else torch.arange(self._size)).tolist()


def tensor_of(file: Any, view: str) -> torch.Tensor:
    """Return uint8 (224, 224, 3) of the image in a file, with a crop that differs from call to call."""
    chance = random.Random(int(torch.randint(2**62, ())))  # noqa: S311 - crops are no secret
    return torch.from_numpy(np.array(view_of(file, view, chance)))


def batch_sizes(task: Task, images: Any, *, shuffled: bool = True, **settings: Any) -> Iterator[int]:
    """Read without end through a DataLoader with as many worker processes as others have threads.

    Args:
        task: What to do.
        images: A dataset of (pixels, label): with a length, or one that iterates for ever.
        shuffled: Whether images are asked for by number in an endless order, as the task wants it.
        settings: More for the DataLoader.
    """
    torch.set_num_threads(1)
    order = {"sampler": _EndlessOrder(task, len(images))} if shuffled else {}
    common = {"batch_size": task.batch_size, "num_workers": task.threads, "prefetch_factor": PREFETCH}
    loader: Iterable[Any] = torch.utils.data.DataLoader(images, **{**common, **order, **settings})
    for _, labels in loader:
        yield len(labels)


def batches(task: Task, _form: str) -> Iterator[int]:
    """Read loose files without end."""
    return batch_sizes(task, _Images(task))

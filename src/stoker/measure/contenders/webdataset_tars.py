"""WebDataset: tar shards split among the workers, a shuffle buffer, Pillow, batches made in the workers."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import webdataset

from stoker.measure.contenders.made_once import made_once
from stoker.measure.contenders.torch_workers import PREFETCH, tensor_of
from stoker.measure.task import SEED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.measure.task import Task

_SHARDS = 8
_WINDOW = 1000


class _EndlessShards(torch.utils.data.IterableDataset[Any]):
    """The shards without an end that workers would wait for; in a new order each epoch."""

    def __init__(self, paths: list[str], *, shuffled: bool) -> None:
        super().__init__()
        self._paths, self._shuffled = paths, shuffled

    def __iter__(self) -> Iterator[dict[str, str]]:
        chance = np.random.default_rng(SEED)  # the same in all workers: each takes its share of one list
        while True:
            for number in chance.permutation(len(self._paths)) if self._shuffled else range(len(self._paths)):
                yield {"url": self._paths[number]}


def _make(task: Task, folder: Path) -> None:
    files = task.files()
    for shard, part in enumerate(np.array_split(np.arange(len(files.paths)), min(_SHARDS, len(files.paths)))):
        with webdataset.TarWriter(str(folder / f"{shard:06d}.tar")) as writer:
            for number in map(int, part):
                image = Path(files.paths[number]).read_bytes()
                writer.write({"__key__": f"{number:07d}", "jpg": image, "cls": str(files.labels[number])})


def batches(task: Task, key: str) -> Iterator[int]:
    """Read without end."""
    torch.set_num_threads(1)
    folder = made_once(task, key, lambda data: _make(task, data))

    def sample(found: dict[str, bytes]) -> tuple[Any, int]:
        return tensor_of(io.BytesIO(found["jpg"]), task.view), int(found["cls"])

    def stacked(samples: list[tuple[Any, int]]) -> tuple[Any, Any]:
        return torch.stack([pixels for pixels, _ in samples]), torch.tensor([label for _, label in samples])

    window = [webdataset.shuffle(_WINDOW, initial=_WINDOW // 4)] if task.is_shuffled else []
    images = webdataset.DataPipeline(
        _EndlessShards(sorted(map(str, folder.glob("*.tar"))), shuffled=task.is_shuffled),
        webdataset.split_by_worker,
        webdataset.tarfile_to_samples(),
        *window,
        webdataset.map(sample),
        webdataset.batched(task.batch_size, collation_fn=stacked, partial=False),
    )
    loader = webdataset.WebLoader(images, batch_size=None, num_workers=task.threads, prefetch_factor=PREFETCH)
    for _, labels in loader:
        yield len(labels)

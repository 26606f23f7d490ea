"""LitData's streaming loader over local chunks of JPEG bytes, Pillow in its workers."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import litdata
import torch

from stoker.measure.contenders.made_once import made_once
from stoker.measure.contenders.torch_workers import PREFETCH, tensor_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.measure.task import LooseFiles, Task

_COPIES = 5
"""Of each image, so that the end of an epoch, at which its workers wait, weighs less."""


class _Images(litdata.StreamingDataset):  # type: ignore[misc]
    """One image a call."""

    def __init__(self, folder: Path, task: Task) -> None:
        super().__init__(str(folder), shuffle=task.is_shuffled, drop_last=False)
        self._view = task.view

    def __getitem__(self, at: Any) -> tuple[Any, int]:
        found = super().__getitem__(at)
        return tensor_of(io.BytesIO(found["image"]), self._view), found["label"]


def _image(files: LooseFiles, number: int) -> dict[str, Any]:
    return {"image": Path(files.paths[number]).read_bytes(), "label": files.labels[number]}


def _make(task: Task, folder: Path) -> None:
    files = task.files()
    litdata.optimize(
        fn=partial(_image, files),
        inputs=list(range(len(files.paths))) * _COPIES,
        output_dir=str(folder),
        chunk_bytes="32MB",
        num_workers=task.threads,
        start_method="fork",
        verbose=False,
    )


def batches(task: Task, key: str) -> Iterator[int]:
    """Epoch after epoch."""
    torch.set_num_threads(1)
    folder = made_once(task, key, lambda data: _make(task, data))
    loader = litdata.StreamingDataLoader(
        _Images(folder, task),
        batch_size=task.batch_size,
        num_workers=task.threads,
        shuffle=task.is_shuffled,
        drop_last=False,
        prefetch_factor=PREFETCH,
        persistent_workers=True,
    )
    while True:
        for _, labels in loader:
            yield len(labels)

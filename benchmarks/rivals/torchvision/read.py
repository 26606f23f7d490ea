"""PyTorch's DataLoader over torchvision's decoders and transforms of tensors (``tensors``), and its dataset.

``imagefolder`` is ImageFolder in one process, ``imagefolder-workers`` in worker processes.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import torch
from torchvision.datasets import ImageFolder
from torchvision.io import ImageReadMode, decode_image, read_file
from torchvision.transforms.v2 import PILToTensor, functional

from benchmarks.rivals.pictures import random_box
from benchmarks.rivals.serving import Batch, serve_batches
from benchmarks.rivals.torch_loader import loader_batches
from benchmarks.rivals.work import SIDE, Work

if TYPE_CHECKING:
    from collections.abc import Iterator


class Images(torch.utils.data.Dataset[Any]):
    """One random crop a call; resizing without antialiasing is the faster one."""

    def __init__(self, work: Work) -> None:
        self._paths = work.photos()

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        image = decode_image(read_file(self._paths[number]), ImageReadMode.RGB)
        box = random_box(*image.shape[-2:])
        image = functional.resized_crop(image, *box, [SIDE, SIDE], antialias=False)
        return functional.horizontal_flip(image) if random.random() < 0.5 else image, number


class Folder(ImageFolder):  # type: ignore[misc]
    """ImageFolder with the number of an image in place of its class."""

    def __init__(self, work: Work) -> None:
        super().__init__(work.tree, PILToTensor())

    def __getitem__(self, number: int) -> tuple[Any, int]:
        return super().__getitem__(number)[0], number


def batches(work: Work) -> Iterator[Batch]:
    """Read without end."""
    dataset = Images(work) if work.form == "tensors" else Folder(work)
    return loader_batches(work, dataset, workers=work.form != "imagefolder")


if __name__ == "__main__":
    serve_batches(batches)

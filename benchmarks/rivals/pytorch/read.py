"""PyTorch's DataLoader over loose files (``simplejpeg``, ``opencv``, ``pillow``) and a mapped array (``memmap``...)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image

from benchmarks.rivals.order import epochs
from benchmarks.rivals.pictures import center_box, decode, decode_cv2, random_box, transform
from benchmarks.rivals.serving import Batch, serve_batches
from benchmarks.rivals.work import SIDE, Work

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def pillow_pixels(path: str, line: str) -> Any:
    """What torchvision's transforms do to a Pillow image."""
    image = Image.open(path).convert("RGB")
    top, left, height, width = (random_box if line == "train" else center_box)(image.height, image.width)
    crop = image.crop((left, top, left + width, top + height)).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    if line == "train" and random.random() < 0.5:
        crop = crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return np.array(crop)


class Photos(torch.utils.data.Dataset[Any]):
    """One photograph a call."""

    def __init__(self, work: Work) -> None:
        self._paths, self._work = work.photos(), work
        self._pixels = transform(work.line, decode_cv2 if work.form == "opencv" else decode)

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        path = self._paths[number]
        if self._work.form == "pillow":
            return torch.from_numpy(pillow_pixels(path, self._work.line)), number
        return torch.from_numpy(self._pixels(Path(path).read_bytes())), number


class Tensors(torch.utils.data.Dataset[Any]):
    """A whole batch a call, gathered from the mapped file: many times the speed of one tensor a call."""

    def __init__(self, work: Work) -> None:
        self._pixels = np.load(work.raw_file, mmap_mode="r")

    def __len__(self) -> int:
        return len(self._pixels)

    def __getitems__(self, numbers: Sequence[int]) -> tuple[Any, Any]:
        chosen = np.asarray(numbers)
        return torch.from_numpy(self._pixels[chosen]), torch.from_numpy(chosen)


def as_it_is(batch: Any) -> Any:
    """Collate what is a batch already."""
    return batch


def batches(work: Work) -> Iterator[Batch]:
    """Many epochs in one list of indices, so that no worker waits for an epoch to end."""
    torch.set_num_threads(1)
    settings: dict[str, Any] = {"num_workers": work.threads, "prefetch_factor": 4}
    if work.form == "memmap":
        settings = {"num_workers": 0}
    if work.line == "raw":
        settings["collate_fn"] = as_it_is
    loader: Any = torch.utils.data.DataLoader(
        Tensors(work) if work.line == "raw" else Photos(work),
        batch_size=work.batch,
        sampler=epochs(work.samples).tolist(),
        drop_last=True,
        **settings,
    )
    while True:
        for images, numbers in loader:
            yield Batch(images.numpy(), numbers.numpy())


if __name__ == "__main__":
    serve_batches(batches)

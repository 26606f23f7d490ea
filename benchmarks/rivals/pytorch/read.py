"""PyTorch's DataLoader over loose files and a mapped array (``memmap``, ``memmap-workers``).

Files are decoded by ``simplejpeg``, ``opencv`` or ``pillow``; large crops of JPEGs by ``simplejpeg-smaller``,
``opencv-smaller`` and ``pillow-smaller`` at a fraction of their size.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image

from benchmarks.rivals.pictures import (
    Box,
    center_box,
    decode_cv2,
    decode_smaller,
    decode_smaller_cv2,
    factor_for,
    random_box,
    smaller_transform,
    transform,
)
from benchmarks.rivals.serving import Batch, serve_batches
from benchmarks.rivals.torch_loader import loader_batches
from benchmarks.rivals.work import SIDE, VIEWS, Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def pillow_pixels(path: str, line: str, *, smaller: bool = False) -> Any:
    """What torchvision's transforms do to a Pillow image, which the decoder may shrink first."""
    image: Image.Image = Image.open(path)
    if line == "multi-crop":
        image = image.convert("RGB")
        return [_pillow_crop(image, random_box(image.height, image.width, scale), side) for side, scale in VIEWS]
    top, left, height, width = (random_box if line == "train" else center_box)(image.height, image.width)
    box = (top, left, height, width)
    if smaller:
        factor, whole = factor_for(height, width), image.size
        image.draft("RGB", (-(-whole[0] // factor), -(-whole[1] // factor)))
        scale = image.width / whole[0]
        box = (round(top * scale), round(left * scale), round(height * scale), round(width * scale))
    return _pillow_crop(image.convert("RGB"), box, SIDE, hflip=0.5 if line == "train" else 0)


def _pillow_crop(image: Image.Image, box: Box, side: int, hflip: float = 0.5) -> Any:
    top, left, height, width = box
    crop = image.crop((left, top, left + width, top + height)).resize((side, side), Image.Resampling.BILINEAR)
    return np.array(crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if random.random() < hflip else crop)


def pixels_of(work: Work) -> Callable[[str], Any]:
    """The function from a path to the pixels of an image."""
    if work.form.startswith("pillow"):
        return lambda path: pillow_pixels(path, work.transform, smaller=work.form == "pillow-smaller")
    pixels = {
        "simplejpeg": transform(work.transform),
        "opencv": decode_cv2 if work.line == "thumbnails" else transform(work.transform, decode_cv2),
        "simplejpeg-smaller": smaller_transform(decode_smaller),
        "opencv-smaller": smaller_transform(decode_smaller_cv2),
    }[work.form]
    return lambda path: pixels(Path(path).read_bytes())


class Photos(torch.utils.data.Dataset[Any]):
    """One image a call."""

    def __init__(self, work: Work) -> None:
        self._paths, self._pixels = work.photos(), pixels_of(work)

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        return self._pixels(self._paths[number]), number


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
    """Read without end."""
    if work.line == "raw":
        return loader_batches(work, Tensors(work), workers=work.form != "memmap", collate_fn=as_it_is)
    return loader_batches(work, Photos(work), workers=True)


if __name__ == "__main__":
    serve_batches(batches)

"""FFCV's loader, in the forms that `benchmarks.rivals.ffcv.prepare` writes, and ``raw64``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from ffcv.fields.decoders import (
    CenterCropRGBImageDecoder,
    IntDecoder,
    RandomResizedCropRGBImageDecoder,
    SimpleRGBImageDecoder,
)
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import RandomHorizontalFlip, Squeeze, ToTensor

from benchmarks.rivals.order import epochs
from benchmarks.rivals.serving import Batch, serve_batches
from benchmarks.rivals.work import RATIO, RESIZE, SCALE, SIDE, Work

if TYPE_CHECKING:
    from collections.abc import Iterator


def image_pipeline(line: str) -> list[Any]:
    """What is done to the pixels on each line; the resize is always OpenCV's INTER_AREA."""
    if line == "raw":
        return [SimpleRGBImageDecoder(), ToTensor()]
    if line == "train":
        return [RandomResizedCropRGBImageDecoder((SIDE, SIDE), SCALE, RATIO), RandomHorizontalFlip(), ToTensor()]
    return [CenterCropRGBImageDecoder((SIDE, SIDE), ratio=SIDE / RESIZE), ToTensor()]


def batches(work: Work) -> Iterator[Batch]:
    """Many epochs in one, given as indices: FFCV starts its threads anew for each."""
    torch.set_num_threads(1)
    loader = Loader(
        work.path_of(f"{work.form}.beton"),
        batch_size=work.batch,
        num_workers=work.threads,
        os_cache=True,
        order=OrderOption.SEQUENTIAL,
        indices=epochs(work.samples),
        batches_ahead=3,
        drop_last=True,
        pipelines={"image": image_pipeline(work.line), "label": [IntDecoder(), ToTensor(), Squeeze()]},
    )
    while True:
        for images, numbers in loader:
            yield Batch(images.numpy(), numbers.numpy())


if __name__ == "__main__":
    serve_batches(batches)

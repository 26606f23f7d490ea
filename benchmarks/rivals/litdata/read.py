"""LitData's streaming loader over local chunks of bytes; its own JPEG type decodes with Pillow, which is slower."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from litdata import StreamingDataLoader, StreamingDataset

from benchmarks.rivals.pictures import transform
from benchmarks.rivals.serving import Batch, serve_batches
from benchmarks.rivals.work import RAW_SIDE, Work

if TYPE_CHECKING:
    from collections.abc import Iterator


class Samples(StreamingDataset):  # type: ignore[misc]
    """One sample a call."""

    def __init__(self, work: Work) -> None:
        is_raw = work.line == "raw"
        super().__init__(work.path_of("raw" if is_raw else "photos"), shuffle=True, drop_last=False)
        self._pixels = None if is_raw else transform(work.line)

    def __getitem__(self, at: Any) -> tuple[Any, int]:
        sample = super().__getitem__(at)
        image = sample["image"]
        if self._pixels is None:
            tensor = torch.frombuffer(bytearray(image), dtype=torch.uint8).view(RAW_SIDE, RAW_SIDE, 3)
            return tensor, sample["number"]
        return torch.from_numpy(self._pixels(image)), sample["number"]


def batches(work: Work) -> Iterator[Batch]:
    """Epoch after epoch."""
    torch.set_num_threads(1)
    loader = StreamingDataLoader(
        Samples(work),
        batch_size=work.batch,
        num_workers=work.threads,
        shuffle=True,
        drop_last=False,
        prefetch_factor=4,
        persistent_workers=True,
    )
    while True:
        for images, numbers in loader:
            yield Batch(images.numpy(), np.asarray(numbers))


if __name__ == "__main__":
    serve_batches(batches)

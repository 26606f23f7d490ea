"""Mosaic Streaming from local MDS shards, its own shuffle, persistent workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from benchmarks.rivals.mosaic.imported import Stream, StreamingDataset, clean_stale_shared_memory
from benchmarks.rivals.pictures import transform
from benchmarks.rivals.serving import Batch, serve_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.rivals.work import Work


class Samples(StreamingDataset):  # type: ignore[misc]
    """One sample a call."""

    def __init__(self, work: Work) -> None:
        is_raw = work.line == "raw"
        super().__init__(
            streams=[Stream(local=work.path_of("raw" if is_raw else "photos"))],
            batch_size=work.batch,
            shuffle=True,
            shuffle_algo="py1e",
            num_canonical_nodes=1,
            predownload=8 * work.batch,
        )
        self._pixels = None if is_raw else transform(work.line)

    def __getitem__(self, at: int) -> tuple[Any, int]:
        sample = super().__getitem__(at)
        image = sample["image"] if self._pixels is None else self._pixels(sample["image"])
        return torch.from_numpy(image), sample["number"]


def batches(work: Work) -> Iterator[Batch]:
    """Epoch after epoch."""
    torch.set_num_threads(1)
    clean_stale_shared_memory()
    loader: Any = torch.utils.data.DataLoader(
        Samples(work), batch_size=work.batch, num_workers=work.threads, prefetch_factor=4, persistent_workers=True
    )
    while True:
        for images, numbers in loader:
            yield Batch(images.numpy(), numbers.numpy())


if __name__ == "__main__":
    serve_batches(batches)

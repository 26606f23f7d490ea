"""WebDataset: an endless list of shards split among the workers, a shuffle buffer, batches made in the workers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import webdataset

from benchmarks.rivals.pictures import transform
from benchmarks.rivals.serving import Batch, serve_batches
from benchmarks.rivals.work import RAW_SIDE, Work

if TYPE_CHECKING:
    from collections.abc import Iterator

_SEED = 1  # the same in all workers: each takes its share of one list


class EndlessShards(torch.utils.data.IterableDataset[Any]):
    """The shards, in a new order each epoch, without an end that workers would wait for."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__()
        self._paths = paths

    def __iter__(self) -> Iterator[dict[str, str]]:
        chance = np.random.default_rng(_SEED)
        while True:
            for number in chance.permutation(len(self._paths)):
                yield {"url": self._paths[number]}


def photo_stages(work: Work) -> list[Any]:
    """Decode, crop, stack."""
    pixels = transform(work.line)

    def sample(members: dict[str, bytes]) -> tuple[Any, int]:
        return pixels(members["jpg"]), int(members["cls"])

    def stacked(samples: list[tuple[Any, int]]) -> tuple[Any, Any]:
        images = np.stack([image for image, _ in samples])
        return torch.from_numpy(images), torch.tensor([number for _, number in samples])

    return [webdataset.map(sample), webdataset.batched(work.batch, collation_fn=stacked, partial=False)]


def raw_stages(work: Work) -> list[Any]:
    """The bytes of a batch, joined in one go."""

    def sample(members: dict[str, bytes]) -> tuple[bytes, int]:
        return members["bin"], int(members["cls"])

    def joined(samples: list[tuple[bytes, int]]) -> tuple[Any, Any]:
        data = bytearray(b"".join([pixels for pixels, _ in samples]))
        images = torch.frombuffer(data, dtype=torch.uint8).view(-1, RAW_SIDE, RAW_SIDE, 3)
        return images, torch.tensor([number for _, number in samples])

    return [webdataset.map(sample), webdataset.batched(work.batch, collation_fn=joined, partial=False)]


def batches(work: Work) -> Iterator[Batch]:
    """Read without end."""
    torch.set_num_threads(1)
    kind, window = ("raw", 5000) if work.line == "raw" else ("photos", work.window)
    paths = sorted(map(str, Path(work.data).glob(f"{kind}-*.tar")))
    dataset = webdataset.DataPipeline(
        EndlessShards(paths),
        webdataset.split_by_worker,
        webdataset.tarfile_to_samples(),
        webdataset.shuffle(window, initial=window // 4),
        *(raw_stages if work.line == "raw" else photo_stages)(work),
    )
    for images, numbers in webdataset.WebLoader(dataset, batch_size=None, num_workers=work.threads, prefetch_factor=4):
        yield Batch(images.numpy(), numbers.numpy())


if __name__ == "__main__":
    serve_batches(batches)

"""Hugging Face datasets: Arrow on the disk, bytes handed out undecoded, PyTorch's DataLoader with workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import datasets
import torch

from benchmarks.rivals.order import epochs
from benchmarks.rivals.pictures import transform
from benchmarks.rivals.serving import Batch, serve_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.rivals.work import Work


def batches(work: Work) -> Iterator[Batch]:
    """Many epochs in one list of indices."""
    torch.set_num_threads(1)
    pixels = transform(work.line)

    def decoded(rows: dict[str, Any]) -> dict[str, Any]:
        images = [torch.from_numpy(pixels(image["bytes"])) for image in rows["image"]]
        return {"image": images, "number": rows["number"]}

    stored = datasets.load_from_disk(work.path_of("photos")).cast_column("image", datasets.Image(decode=False))
    loader: Any = torch.utils.data.DataLoader(
        stored.with_transform(decoded),
        batch_size=work.batch,
        sampler=epochs(work.samples).tolist(),
        num_workers=work.threads,
        prefetch_factor=4,
        drop_last=True,
    )
    while True:
        for batch in loader:
            yield Batch(batch["image"].numpy(), batch["number"].numpy())


if __name__ == "__main__":
    serve_batches(batches)

"""PyTorch's DataLoader over a dataset of pairs, each of pixels and the number of their sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from benchmarks.rivals.order import epochs
from benchmarks.rivals.serving import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.rivals.work import Work


def loader_batches(work: Work, dataset: Any, *, workers: bool, **settings: Any) -> Iterator[Batch]:
    """Many epochs in one list of indices, so that no worker waits for an epoch to end.

    Args:
        work: What to do.
        dataset: Of the images of ``work``.
        workers: Whether worker processes read; otherwise this one does.
        settings: More for the DataLoader.
    """
    torch.set_num_threads(1)
    if workers:
        settings |= {"num_workers": work.threads, "prefetch_factor": 4}
    loader: Any = torch.utils.data.DataLoader(
        dataset, batch_size=work.batch, sampler=epochs(work.samples).tolist(), drop_last=True, **settings
    )
    while True:
        for images, numbers in loader:
            yield Batch((images[0] if work.line == "multi-crop" else images).numpy(), numbers.numpy())

"""SPDL's thread pipeline over loose files: one task makes a whole batch, which is faster than one task an image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from spdl.pipeline import PipelineBuilder

from benchmarks.rivals.order import epochs
from benchmarks.rivals.pictures import transform
from benchmarks.rivals.serving import Batch, serve_batches

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.rivals.work import Work


def batches(work: Work) -> Iterator[Batch]:
    """Read without end."""
    paths, pixels = work.photos(), transform(work.line)

    def whole(numbers: Sequence[int]) -> Any:
        return np.stack([pixels(Path(paths[number]).read_bytes()) for number in numbers]), np.array(numbers)

    builder = PipelineBuilder().add_source(epochs(work.samples).tolist()).aggregate(work.batch, drop_last=True)
    pipeline = builder.pipe(whole, concurrency=work.threads).add_sink(4).build(num_threads=work.threads)
    with pipeline.auto_stop():
        for images, numbers in pipeline.get_iterator():
            yield Batch(images, numbers)


if __name__ == "__main__":
    serve_batches(batches)

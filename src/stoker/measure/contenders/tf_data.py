"""A tuned tf.data pipeline: parallel interleave, fused decode and crop with the fast DCT, private thread pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.feed import open_dataset
from stoker.tensorflow import graph_dataset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.measure.task import Task

_SHUFFLE_WINDOW = 1000


def batches(task: Task, _form: str) -> Iterator[int]:
    """Run the pipeline without end."""
    pipeline = graph_dataset(
        open_dataset(task.place("plain"), "train"),
        batch_size=task.batch_size,
        view=task.stoker_view,
        shuffle_buffer=_SHUFFLE_WINDOW if task.is_shuffled else 0,
        epochs=None,
        drop_remainder=True,
        threads=task.threads,
    )
    for _, labels in pipeline:
        yield int(labels.shape[0])

"""Pillow over images that are fetched from a bucket one by one."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from stoker.measure.contenders.python_files import batches_of, decode
from stoker.measure.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.measure.task import Task

_THREADS_A_CPU = 8


def batches(task: Task, form: str) -> Iterator[int]:
    """Read what the user has named, an object or a range of one for each image."""
    dataset = Selection.read(Path(task.data)).open()
    is_raw = dataset.schema.image_encoding == "raw"

    def open_image(number: int) -> Image.Image:
        sample = dataset[number]
        return Image.fromarray(sample.decode()) if is_raw else decode(io.BytesIO(sample.encoded))

    yield from batches_of(task, form, len(dataset), open_image, task.threads * _THREADS_A_CPU)

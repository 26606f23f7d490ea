"""Grain over ArrayRecord, its threads, Pillow."""

from __future__ import annotations

import io
import random
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grain
import numpy as np
from absl import flags
from array_record.python.array_record_module import ArrayRecordWriter

from stoker.measure.contenders.made_once import made_once
from stoker.measure.contenders.python_files import view_of
from stoker.measure.task import SEED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stoker.measure.task import Task

_SHARDS = 8
_LABEL = struct.Struct("<q")


def _make(task: Task, folder: Path) -> None:
    files = task.files()
    for shard, part in enumerate(np.array_split(np.arange(len(files.paths)), min(_SHARDS, len(files.paths)))):
        # One record in a group is what random access needs.
        writer = ArrayRecordWriter(str(folder / f"{shard:05d}.array_record"), "group_size:1")
        for number in map(int, part):
            writer.write(_LABEL.pack(files.labels[number]) + Path(files.paths[number]).read_bytes())
        writer.close()


def batches(task: Task, key: str) -> Iterator[int]:
    """Read without end."""
    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["grain"])
    folder = made_once(task, key, lambda data: _make(task, data))
    chance = random.Random(SEED)  # noqa: S311 - crops are no secret

    def sample(record: bytes) -> tuple[Any, int]:
        return view_of(io.BytesIO(record[_LABEL.size :]), task.view, chance), _LABEL.unpack_from(record)[0]

    def stacked(samples: Sequence[tuple[Any, int]]) -> tuple[Any, Any]:
        return np.stack([pixels for pixels, _ in samples]), np.array([label for _, label in samples])

    records = grain.MapDataset.source(grain.sources.ArrayRecordDataSource(sorted(map(str, folder.iterdir()))))
    ordered = records.shuffle(seed=SEED) if task.is_shuffled else records
    batched = ordered.repeat().map(sample).batch(task.batch_size, batch_fn=stacked)
    reading = grain.ReadOptions(num_threads=task.threads, prefetch_buffer_size=2 * task.threads)
    for _, labels in batched.to_iter_dataset(reading):
        yield len(labels)

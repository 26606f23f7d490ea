"""Grain over ArrayRecord, in the forms ``threads`` and ``processes``."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grain
import numpy as np
from absl import flags

from benchmarks.rivals.pictures import transform
from benchmarks.rivals.serving import Batch, serve_batches
from benchmarks.rivals.work import RAW_SIDE, Work

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SEED = 1


def photo_batches(work: Work, source: Any) -> Any:
    """One record after another is decoded, then batched."""
    pixels = transform(work.line)

    def sample(record: bytes) -> tuple[Any, int]:
        return pixels(record[8:]), struct.unpack_from("<q", record)[0]

    def stacked(samples: Sequence[tuple[Any, int]]) -> tuple[Any, Any]:
        return np.stack([image for image, _ in samples]), np.array([number for _, number in samples])

    records = grain.MapDataset.source(source).shuffle(seed=SEED).repeat()
    return records.map(sample).batch(work.batch, batch_fn=stacked)


def raw_batches(work: Work, source: Any) -> Any:
    """The numbers of a batch first, then one call that reads all of it: several times the speed of single reads."""

    def read(numbers: Sequence[int]) -> tuple[Any, Any]:
        records = source.__getitems__([int(number) for number in numbers])
        data = np.frombuffer(b"".join(records), np.uint8).reshape(len(records), -1)
        return data[:, 8:].reshape(-1, RAW_SIDE, RAW_SIDE, 3).copy(), data[:, :8].copy().view("<i8").reshape(-1)

    return grain.MapDataset.range(len(source)).shuffle(seed=SEED).repeat().batch(work.batch).map(read)


def batches(work: Work) -> Iterator[Batch]:
    """Read without end."""
    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["grain"])
    kind = "raw" if work.line == "raw" else "photos"
    source = grain.sources.ArrayRecordDataSource(sorted(map(str, Path(work.data).glob(f"{kind}-*.array_record"))))
    dataset = (raw_batches if work.line == "raw" else photo_batches)(work, source)
    if work.form == "processes":
        options = grain.MultiprocessingOptions(num_workers=work.threads, per_worker_buffer_size=4)
        dataset = dataset.to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=4)).mp_prefetch(options)
    else:
        reading = grain.ReadOptions(num_threads=work.threads, prefetch_buffer_size=2 * work.threads)
        dataset = dataset.to_iter_dataset(reading)
    for images, numbers in dataset:
        yield Batch(images, numbers)


if __name__ == "__main__":
    serve_batches(batches)

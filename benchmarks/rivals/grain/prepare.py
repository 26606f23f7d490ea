"""ArrayRecord shards: eight bytes of the sample's number, then the JPEG or the pixels."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from array_record.python.array_record_module import ArrayRecordWriter

from benchmarks.rivals.work import Work

if TYPE_CHECKING:
    from collections.abc import Iterable

SHARDS, RAW_SHARDS = 8, 16


def write_shard(path: Path, options: str, records: Iterable[tuple[int, bytes]]) -> None:
    """Write one shard. One record in a group is what random access needs."""
    writer = ArrayRecordWriter(str(path), options)
    for number, payload in records:
        writer.write(struct.pack("<q", number) + payload)
    writer.close()


def prepare(work: Work) -> None:
    """Write photographs and tensors."""
    photos, pixels = work.photos(), np.load(work.raw_file, mmap_mode="r")
    Path(work.data).mkdir(parents=True, exist_ok=True)
    for shard, part in enumerate(np.array_split(np.arange(len(photos)), SHARDS)):
        path = Path(work.path_of(f"photos-{shard:05d}-of-{SHARDS:05d}.array_record"))
        write_shard(path, "group_size:1", ((int(i), Path(photos[i]).read_bytes()) for i in part))
    for shard, part in enumerate(np.array_split(np.arange(len(pixels)), RAW_SHARDS)):
        path = Path(work.path_of(f"raw-{shard:05d}-of-{RAW_SHARDS:05d}.array_record"))
        write_shard(path, "group_size:1,uncompressed", ((int(i), pixels[i].tobytes()) for i in part))


if __name__ == "__main__":
    prepare(Work.from_json(sys.argv[1]))

"""Tar shards of ``.jpg`` or ``.bin`` and ``.cls``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import webdataset

from benchmarks.rivals.work import Work

SHARDS, RAW_SHARDS = 8, 16


def prepare(work: Work) -> None:
    """Write photographs and tensors."""
    photos, pixels = work.photos(), np.load(work.raw_file, mmap_mode="r")
    Path(work.data).mkdir(parents=True, exist_ok=True)
    for name, count, shards in (("photos", len(photos), SHARDS), ("raw", len(pixels), RAW_SHARDS)):
        for shard, part in enumerate(np.array_split(np.arange(count), shards)):
            with webdataset.TarWriter(work.path_of(f"{name}-{shard:06d}.tar")) as writer:
                for i in map(int, part):
                    is_photo = name == "photos"
                    image = {"jpg": Path(photos[i]).read_bytes()} if is_photo else {"bin": pixels[i].tobytes()}
                    writer.write({"__key__": f"{i:07d}", "cls": str(i), **image})


if __name__ == "__main__":
    prepare(Work.from_json(sys.argv[1]))

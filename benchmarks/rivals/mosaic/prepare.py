"""MDS shards of the JPEG bytes, and of the tensors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rivals.mosaic.imported import MDSWriter
from benchmarks.rivals.work import Work


def prepare(work: Work) -> None:
    """Write photographs and tensors."""
    photos, pixels = work.photos(), np.load(work.raw_file, mmap_mode="r")
    with MDSWriter(
        out=work.path_of("photos"), columns={"image": "bytes", "number": "int"}, size_limit=1 << 24
    ) as writer:
        for number in np.random.default_rng(0).permutation(len(photos)):
            writer.write({"image": Path(photos[number]).read_bytes(), "number": int(number)})
    columns: Any = {"image": "ndarray:uint8:64,64,3", "number": "int"}
    with MDSWriter(out=work.path_of("raw"), columns=columns, size_limit=1 << 26) as writer:
        for number in range(len(pixels)):
            writer.write({"image": np.array(pixels[number]), "number": number})


if __name__ == "__main__":
    prepare(Work.from_json(sys.argv[1]))

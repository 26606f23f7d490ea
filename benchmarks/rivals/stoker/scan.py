"""Megabytes a second on one core: shards scanned with CRC checks (``scan``), and the same bytes copied (``copy``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import stoker
from benchmarks.rivals.serving import serve_amounts
from stoker import _native

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.rivals.work import Work


def amounts(work: Work) -> Iterator[float]:
    """Go over the shards again and again."""
    shards = [shard.local_path for shard in stoker.open(work.path_of("raw64"), split="train").shards]
    if work.form == "scan":
        while True:
            for shard in shards:
                _native.scan_shard(str(shard), check=True)
                yield shard.stat().st_size / 1e6
    held = [np.fromfile(shard, np.uint8) for shard in shards]
    target = np.empty(max(map(len, held)), np.uint8)
    while True:
        for source in held:
            np.copyto(target[: len(source)], source)
            yield len(source) / 1e6


if __name__ == "__main__":
    serve_amounts(amounts)

"""A process that reads a dataset through a node cache, checks every byte, and tells what it saw.

``python cache_reader.py SHARDS CACHE BUDGET WHAT``, where WHAT is ``rounds N``: read everything N times; ``forever``:
empty the file and fill it again, until somebody kills this; ``limit BYTES``: read everything twice where no file may be
written beyond that length.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
from dataclasses import asdict
from pathlib import Path

import stoker
from stoker import _native
from stoker.loader.caches import NodeCache


def tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def read_all(source: _native.CachedSource, expected: list[bytes]) -> None:
    for number in random.sample(range(len(expected)), len(expected)):
        if source.read(number) != expected[number]:
            raise SystemExit(f"sample {number} has wrong bytes")


def main(shards: str, directory: str, budget: str, what: str, count: str = "1") -> None:
    dataset = stoker.open(shards)
    cache = NodeCache(directory, int(budget))
    samples = dataset.reader.source(check=True)
    source = cache.source(dataset, samples)
    expected = [dataset.records.read(number) for number in range(len(dataset))]
    tell("ready")
    if what == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(count), int(count)))
    (file,) = Path(directory).glob("*.samples")
    length = file.stat().st_size
    rounds = {"rounds": int(count), "limit": 2}.get(what)
    while rounds is None or rounds > 0:
        read_all(source, expected)
        if rounds is None:
            os.truncate(file, 0)
            os.truncate(file, length)
        else:
            rounds -= 1
    tell(json.dumps(asdict(cache.stats())))
    cache.warn_of_problems()


if __name__ == "__main__":
    main(*sys.argv[1:])

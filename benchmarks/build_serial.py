"""What of a build is serial, in microseconds of CPU an image, and how many images a second that allows on many cores.

    python benchmarks/build_serial.py FOLDER [--resize HOW] [--encode HOW] [--rounds 5] [--cores 64]

Measured is a build of the folder with one converting thread, in this process; medians over the rounds. Parts:

- ``main``: the thread that lists, plans, writes and keeps the journal; ``write``, what of that appends to
  the shard, where the interpreter's lock (the GIL) is free;
- ``convert``: the converting threads; ``free``, what of that is in the core's call for many images, without the GIL;
- ``commit``: the threads that bring shards to the disk, nearly all of it without the GIL.

The GIL is held for at most ``main - write + convert - free``. With N cores a build makes at most the least of
``N / (main + convert + commit)``, ``1 / main`` and ``1 / GIL`` images a second. Waiting for disks is not in it.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import stoker
from stoker import _native
from stoker.builder import ItemConverter
from stoker.format import ShardWriter
from stoker.storage.files import LocalStaging

if TYPE_CHECKING:
    from collections.abc import Callable

MEASURED: dict[str, tuple[Any, str]] = {
    "write": (LocalStaging, "write"),
    "convert": (ItemConverter, "convert"),
    "free": (_native, "build_records"),
    "commit": (ShardWriter, "commit"),
}


def timed(seconds: dict[str, float], part: str, work: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, which then adds the CPU time of its thread to a part."""

    def run(*args: Any, **settings: Any) -> Any:
        began = time.thread_time()
        try:
            return work(*args, **settings)
        finally:
            seconds[part] += time.thread_time() - began

    return run


def measure(source: str, settings: dict[str, Any], seconds: dict[str, float]) -> dict[str, float]:
    """Build once; return the microseconds of each part an image."""
    with tempfile.TemporaryDirectory() as folder:
        seconds.clear()
        began = time.thread_time()
        report = stoker.build(source, Path(folder, "out"), threads=1, max_rejects=2**31, **settings)
        seconds["main"] = time.thread_time() - began
    return {part: seconds[part] / report.items * 1e6 for part in ("main", *MEASURED)}


def bounds(part: dict[str, float], cores: int) -> dict[str, float]:
    """Return the images a second that each limit allows."""
    held = part["main"] - part["write"] + part["convert"] - part["free"]
    work = part["main"] + part["convert"] + part["commit"]
    return {f"{cores} cores": cores * 1e6 / work, "the main thread": 1e6 / part["main"], "the GIL": 1e6 / held}


def main() -> None:
    """Measure, and print what follows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--resize")
    parser.add_argument("--encode")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", type=int, default=64)
    given = parser.parse_args()
    settings = {name: value for name in ("resize", "encode") if (value := getattr(given, name)) is not None}
    seconds: defaultdict[str, float] = defaultdict(float)
    for part, (owner, name) in MEASURED.items():
        setattr(owner, name, timed(seconds, part, getattr(owner, name)))
    measure(given.folder, settings, seconds)  # reads the files into the page cache
    rounds = [measure(given.folder, settings, seconds) for _ in range(given.rounds)]
    for part in rounds[0]:
        times = sorted(timings[part] for timings in rounds)
        print(f"{part:8} {statistics.median(times):8.1f} us an image ({times[0]:.1f} to {times[-1]:.1f})")
    medians = {part: statistics.median(timings[part] for timings in rounds) for part in rounds[0]}
    for limit, rate in sorted(bounds(medians, given.cores).items(), key=lambda pair: pair[1]):
        print(f"{limit}: {rate:,.0f} images a second at most")


if __name__ == "__main__":
    main()

"""Epochs from a disk that takes its time for every read, with nothing of the files in memory. For root, on Linux.

    python -m benchmarks.slow_disk DATASET [--milliseconds 10] [--raw SIZE] [--rounds 3] [--before SRC]

The folder of the dataset is mounted once more through FUSE (``slow_disk.c``, compiled here with ``cc``), each read of
which takes so long; any number may be under way. Each round reads one shuffled epoch by the loader's usual settings,
after the files were dropped from the page cache, and one more, which finds them there. With ``--before``, the ``src``
of another checkout with its core compiled, both take turns, and the ratio is the median of the rounds' own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import stoker
from stoker.inspect.measuring import drop_from_page_cache

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = Path(__file__).with_suffix(".c")


@contextmanager
def slow_disk(folder: Path, milliseconds: float) -> Iterator[Path]:
    """Mount a folder once more, slowly."""
    with tempfile.TemporaryDirectory(prefix="stoker-slow-disk-") as temporary:
        program, mounted = Path(temporary) / "slow_disk", Path(temporary) / "mounted"
        subprocess.run(["cc", "-O2", "-pthread", PROGRAM, "-o", program], check=True)
        mounted.mkdir()
        with subprocess.Popen([program, folder, mounted, str(milliseconds)]) as server:
            while server.poll() is None and not mounted.is_mount():
                time.sleep(0.01)
            if server.poll() is not None:
                raise SystemExit("the folder cannot be mounted: this takes root and /dev/fuse")
            try:
                yield mounted
            finally:
                subprocess.run(["umount", mounted], check=True)


def epochs(path: str, raw: int | None) -> list[float]:
    """Return images a second of an epoch without anything in memory, and of the next."""
    drop_from_page_cache([file for file in Path(path).iterdir() if file.is_file()])
    transform = stoker.RandomResizedCrop(224, hflip=0.5) if raw is None else stoker.RawTensor(raw)
    rates = []
    with stoker.Loader(stoker.open(path, "train"), 64, transform=transform, shuffle=True, seed=17) as loader:
        for _ in range(2):
            began, images = time.perf_counter(), 0
            for batch in loader:
                images += len(batch)
            rates.append(images / (time.perf_counter() - began))
    return rates


def elsewhere(source: str, path: str, raw: int | None) -> list[float]:
    """The same in a process of its own, by the package in a folder."""
    command = [sys.executable, "-m", "benchmarks.slow_disk", path, "--measure", *(["--raw", str(raw)] if raw else [])]
    result = subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": source}, stdout=subprocess.PIPE)
    rates: list[float] = json.loads(result.stdout)
    return rates


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--milliseconds", type=float, default=10.0)
    parser.add_argument("--raw", type=int, help="the records are pixels of this size")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", help="the src of another checkout, to compare with")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(epochs(str(options.dataset), options.raw)))
        return
    sources = {"after": str(Path(stoker.__file__).parents[1])}
    if options.before is not None:
        sources = {"before": options.before} | sources
    by_source: dict[str, list[list[float]]] = {name: [] for name in sources}
    with slow_disk(options.dataset, options.milliseconds) as mounted:
        for _ in range(options.rounds):
            for name, source in sources.items():
                by_source[name].append(elsewhere(source, str(mounted), options.raw))
    for name, rounds in by_source.items():
        cold, warm = (statistics.median(rates) for rates in zip(*rounds, strict=True))
        print(f"{name}: {cold:.0f} images/s from the disk, {warm:.0f} from memory")
    if options.before is not None:
        for number, what in enumerate(("from the disk", "from memory")):
            pairs = zip(by_source["before"], by_source["after"], strict=True)
            ratios = sorted(after[number] / before[number] for before, after in pairs)
            print(f"{what}: {statistics.median(ratios):.2f}x ({ratios[0]:.2f} to {ratios[-1]:.2f})")


if __name__ == "__main__":
    main()

"""What fields cost: CPU time of an image with a caption against without, and without fields against another version.

python benchmarks/fields_cost.py DATASET [--images 256] [--rounds 20] [--seconds 1] [--before SRC]

The first images of the dataset are written once more with a caption each, as crops of 224 pixels are read on one
thread; and raw tensors of 64 x 64 random pixels, where next to nothing is done beside reading records. In turns, one
loader takes the captions and another does not; quoted is the CPU time of the whole process. With --before SRC, the
folder of another version's package (src/), both versions read without fields, each in processes of its own, turn by
turn. Quoted are medians over pairs of turns with the interval that holds the true one with 95 %: rates with against
without captions, and of this version against the other.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import stoker
from stoker import _native

TRANSFORMS = {"crops": stoker.RandomResizedCrop(224, hflip=0.5), "raw": stoker.RawTensor(64)}
RAW_IMAGES = 4096
CAPTION = "A photograph of a small animal in front of a house, taken at noon, number {}"


def write_captions(dataset: stoker.Dataset, images: int, path: Path) -> None:
    """Write the first records of a dataset with a caption each."""
    with path.open("wb") as shard:
        for number in range(min(images, len(dataset))):
            features = {
                **dataset[number].features,
                "caption": ("bytes", [CAPTION.format(number).encode()]),
            }
            shard.write(_native.frame_example(features))


def write_tensors(path: Path) -> None:
    """Build a dataset of raw tensors."""
    random = np.random.default_rng(17)
    tensors = random.integers(0, 256, (RAW_IMAGES, 64, 64, 3), np.uint8)
    records = [{"image": tensor, "label": number % 10} for number, tensor in enumerate(tensors)]
    stoker.build(records, path, shards=1, resize="exact:64x64", encode="raw", preset="dlbs", progress=False)


def turn(loader: stoker.Loader, seconds: float) -> float:
    """CPU microseconds of this process for an image."""
    loader.set_epoch(0)
    images, begun, end = 0, time.process_time(), time.monotonic() + seconds
    while time.monotonic() < end:
        images += sum(len(batch) for batch in loader)
    return 1e6 * (time.process_time() - begun) / images


def open_loader(path: Path, line: str, **settings: object) -> stoker.Loader:
    """A loader on one thread."""
    dataset = stoker.open(path)
    transform = TRANSFORMS[line]
    return stoker.Loader(dataset, 64, shuffle=True, transform=transform, threads=1, seed=17, **settings)  # type: ignore[arg-type]


def turn_of_version(source: str, path: Path, line: str, seconds: float) -> float:
    """The same in a process of its own, of the version whose package lies in a folder."""
    command = [sys.executable, __file__, str(path), "--seconds", str(seconds), "--turn", line]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": source}, capture_output=True, text=True, check=True)
    return float(done.stdout)


def report(name: str, pairs: list[tuple[float, float]]) -> None:
    """Print a row: the rate of the first of each pair against the second."""
    ratios = sorted(second / first for first, second in pairs)
    half = min(round(0.98 * len(ratios) ** 0.5), (len(ratios) - 1) // 2)  # 1.96 sd of the rank of a median
    low, high = ratios[len(ratios) // 2 - half], ratios[len(ratios) // 2 + half]
    first, second = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"| {name} | {first:.1f} | {second:.1f} | {statistics.median(ratios):.4f} | {low:.4f} to {high:.4f} |",
        flush=True,
    )


def measure(path: Path, line: str, args: argparse.Namespace) -> None:
    """Measure and print the rows of a line."""
    with (
        open_loader(path, line) as plain,
        open_loader(path, line, fields={"caption": stoker.fields.Text()}) as captioned,
    ):
        loaders = captioned, plain
        pairs = []
        for number in range(args.rounds):
            order = (0, 1) if number % 2 else (1, 0)
            spent = {position: turn(loaders[position], args.seconds) for position in order}
            pairs.append((spent[0], spent[1]))
    report(f"{line}: with a caption / without", pairs)
    if args.before:
        sources = str(Path(stoker.__file__).parents[1]), args.before
        pairs = []
        for number in range(args.rounds):
            order = (0, 1) if number % 2 else (1, 0)
            spent = {position: turn_of_version(sources[position], path, line, args.seconds) for position in order}
            pairs.append((spent[0], spent[1]))
        report(f"{line}: this version / before, without fields", pairs)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--before", metavar="SRC")
    parser.add_argument("--lines", nargs="+", choices=TRANSFORMS, default=list(TRANSFORMS))
    parser.add_argument("--turn", choices=TRANSFORMS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.turn:
        with open_loader(args.dataset, args.turn) as loader:
            turn(loader, args.seconds / 4)  # warms up
            print(turn(loader, args.seconds))
        return
    with tempfile.TemporaryDirectory() as folder:
        print("| CPU us an image | first | second | rate of first / second | 95 % |\n|---|---:|---:|---:|---|")
        for line in args.lines:
            source = args.dataset
            if line == "raw":
                source = Path(folder) / "tensors"
                write_tensors(source)
            path = Path(folder) / f"{line}-00000-of-00001"
            write_captions(stoker.open(source), args.images if line == "crops" else RAW_IMAGES, path)
            measure(path, line, args)


if __name__ == "__main__":
    main()

"""Two minutes before and after a change: each line beside something of other make, against what was stored before.

python -m benchmarks.quick PHOTOS [--store FILE] [--rounds 9] [--seconds 0.5] [--only LINES] [--save]

Each line is Stoker and a reference that a change to Stoker does not change, in turns, on the same bytes: Pillow or
plain Python, one thread each. What is compared is images per second of CPU time, and of that the ratio within a round,
which other programs disturb least. The first run on a machine stores its ratios; each later one compares: a line fails
where its whole interval (95 %) lies more than 3 % below the stored one. Exit code 1: a line failed. Other programs
disturb Stoker and its references differently: how busy they were is said at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import stoker
from benchmarks.rivals.turns import busy_seconds
from stoker import _native
from stoker.errors import LabelWarning
from stoker.inspect.bench import BenchSpec, describe_machine, run_bench
from stoker.storage import location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stoker.inspect.measuring import TransformName

TOLERANCE = 0.03
IMAGES = 200
"""Photographs that are read and built."""
TENSORS = 4096
READERS = {"stoker-own": "files", "stoker": "shards", "stoker-restart": "restart markers", "stoker-fast": "fast"}
REFERENCE = "python-serial"
LINES = ("train", "eval", "raw", "scan", "build")

Pairs = list[tuple[float, float]]
"""Rates of Stoker and of the reference, of each round."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A median over rounds, and the interval that holds the true one with 95 %."""

    median: float
    low: float
    high: float

    def holds(self, stored: Ratio) -> bool:
        """Whether it is not clearly below what was stored."""
        return self.high >= (1 - TOLERANCE) * stored.low


def ratio_of(pairs: Pairs) -> Ratio:
    """Summarise the ratios of all rounds."""
    ratios = sorted(ours / theirs for ours, theirs in pairs)
    below = (len(ratios) - 1) // 2  # the rank of the median, or of the lower of two in the middle
    rank = max(0, below - round(0.98 * len(ratios) ** 0.5))  # 1.96 sd of the rank of a median
    return Ratio(statistics.median(ratios), ratios[rank], ratios[-1 - rank])


def read_photos(photos: Path, transform: TransformName, rounds: int, seconds: float) -> Iterator[tuple[str, Pairs]]:
    """Photographs as files and in shards, beside Pillow."""
    only = (REFERENCE, *READERS)
    spec = BenchSpec(
        str(photos), transform=transform, threads=1, seconds=seconds, rounds=rounds, images=IMAGES, only=only
    )
    report = run_bench(spec)
    rows = {row.key: row.images_per_cpu_second for row in report.rows}
    for key, why in report.failed.items():
        raise SystemExit(f"error: {transform}, {key}: {why}")
    for key, name in READERS.items():
        yield f"{transform}, {name}", list(zip(rows[key], rows[REFERENCE], strict=True))


def cpu_rate(work: Callable[[], int], seconds: float) -> float:
    """What is done in a second of CPU time of this process."""
    done, cpu, end = 0, time.process_time(), time.monotonic() + seconds
    while time.monotonic() < end:
        done += work()
    return done / (time.process_time() - cpu)


def in_turns(ours: Callable[[], int], theirs: Callable[[], int], rounds: int, seconds: float) -> Pairs:
    """Have both warm up and take turns; who is first alternates."""
    ours(), theirs()
    pairs = []
    for number in range(rounds):
        first, second = (ours, theirs) if number % 2 else (theirs, ours)
        rates = {first: cpu_rate(first, seconds), second: cpu_rate(second, seconds)}
        pairs.append((rates[ours], rates[theirs]))
    return pairs


def make_tensors(folder: Path) -> Path:
    """Build a dataset of raw tensors of 64 x 64 random pixels; return its shard."""
    pixels = np.random.default_rng(17).integers(0, 256, (TENSORS, 64, 64, 3), np.uint8)
    records = [{"image": tensor, "label": number % 10} for number, tensor in enumerate(pixels)]
    stoker.build(records, folder, shards=1, resize="exact:64x64", encode="raw", preset="dlbs", progress=False)
    return Path(stoker.open(folder).shards[0].local_path)


def read_tensors(folder: Path, shard: Path, rounds: int, seconds: float) -> Pairs:
    """Raw tensors in random order, beside reading as many bytes at random offsets into an array."""
    size = shard.stat().st_size // TENSORS
    rows = np.empty((256, size), np.uint8)
    chance = np.random.default_rng(17)
    with ExitStack() as stack:
        file = os.open(shard, os.O_RDONLY)
        stack.callback(os.close, file)
        loader = stack.enter_context(
            stoker.Loader(stoker.open(folder), 256, shuffle=True, transform=stoker.RawTensor(64), threads=1, seed=17)
        )

        def ours() -> int:
            return sum(len(batch) for batch in loader)

        def theirs() -> int:
            for row, number in enumerate(chance.permutation(TENSORS - 1).tolist()):
                os.preadv(file, [rows[row % len(rows)]], number * size)
            return TENSORS - 1

        return in_turns(ours, theirs, rounds, seconds)


def scan(shard: Path, rounds: int, seconds: float) -> Pairs:
    """A shard that is scanned and checked, beside a copy in memory."""
    held = np.fromfile(shard, np.uint8)
    target = np.empty_like(held)

    def ours() -> int:
        _native.scan_shard(str(shard), check=True)
        return 1

    def theirs() -> int:
        np.copyto(target, held)
        return 1

    return in_turns(ours, theirs, rounds, seconds)


def build(photos: Path, folder: Path, rounds: int) -> Pairs:
    """A build of the bytes as they are, beside copying them into one file."""
    files = sorted(path for path in photos.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))[:IMAGES]
    records = [{"image": path, "label": number % 10} for number, path in enumerate(files)]

    def ours() -> int:
        with tempfile.TemporaryDirectory(dir=folder) as out:
            stoker.build(records, Path(out) / "dataset", shards=2, threads=1, progress=False)
        return len(files)

    def theirs() -> int:
        with tempfile.TemporaryFile(dir=folder) as out:
            for path in files:
                out.write(path.read_bytes())
            out.flush()
            os.fsync(out.fileno())
        return len(files)

    return in_turns(ours, theirs, rounds, 0.0001)


def measured(photos: Path, lines: Sequence[str], rounds: int, seconds: float) -> Iterator[tuple[str, Pairs]]:
    """Every line that is asked for."""
    transforms: tuple[TransformName, ...] = ("train", "eval")
    for transform in transforms:
        if transform in lines:
            yield from read_photos(photos, transform, rounds, seconds)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shard = make_tensors(folder / "tensors") if {"raw", "scan"} & set(lines) else folder
        if "raw" in lines:
            yield "raw, 64 x 64", read_tensors(folder / "tensors", shard, 3 * rounds, seconds / 3)
        if "scan" in lines:
            yield "scan", scan(shard, 3 * rounds, seconds / 3)
        if "build" in lines:
            yield "build, keep", build(photos, folder, 3 * rounds)


def others_seconds() -> float | None:
    """CPU time of all programs of the machine but this one and what it has started and ended; None: not known."""
    if sys.platform != "linux":
        return None
    return busy_seconds() - sum(os.times()[:4])


def main(words: Sequence[str] | None = None) -> int:
    """Measure, compare, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path, help="folder of JPEGs")
    parser.add_argument("--store", type=Path, default=Path("build", "bench-quick.json"), help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each turn (default 0.5)")
    parser.add_argument("--only", default=",".join(LINES), help="lines, with commas (default: all)")
    parser.add_argument("--save", action="store_true", help="store these ratios in place of those of before")
    args = parser.parse_args(words)
    lines = args.only.split(",")
    if unknown := set(lines) - set(LINES):
        parser.error(f"there is no line {min(unknown)!r}; the lines are {', '.join(LINES)}")
    warnings.simplefilter("ignore", LabelWarning)  # labels are read, not used
    machine = describe_machine()
    about = f"{machine.processor}, {machine.cpus} CPUs, {machine.kernels}, Python {machine.python}"
    key = f"{about}, {args.photos.resolve()}"
    known = json.loads(args.store.read_text(encoding="utf-8")) if args.store.exists() else {}
    stored = {name: Ratio(**ratio) for name, ratio in known.get(key, {}).items()}
    began, busy = time.monotonic(), others_seconds()
    print(f"{key}\n\n| line | ratio | 95 % | stored | |\n|---|---:|---|---:|---|", flush=True)
    failed: list[str] = []
    ratios: dict[str, Ratio] = {}
    for name, pairs in measured(args.photos, lines, args.rounds, args.seconds):
        ratio = ratio_of(pairs)
        ratios[name] = ratio
        before = stored.get(name)
        verdict = "new" if before is None else "ok" if ratio.holds(before) else "SLOWER"
        if verdict == "SLOWER":
            failed.append(name)
        shown = "" if before is None else f"{before.median:.3f} ({before.low:.3f} to {before.high:.3f})"
        print(
            f"| {name} | {ratio.median:.3f} | {ratio.low:.3f} to {ratio.high:.3f} | {shown} | {verdict} |", flush=True
        )
    kept = {**stored, **ratios} if args.save else {**ratios, **stored}
    args.store.parent.mkdir(parents=True, exist_ok=True)
    as_json = {name: asdict(ratio) for name, ratio in kept.items()}
    location(args.store).write_atomically((json.dumps({**known, key: as_json}, indent=1) + "\n").encode())
    if busy is not None and (after := others_seconds()) is not None:
        print(f"\nOther programs kept {(after - busy) / (time.monotonic() - began):.2f} CPUs busy.")
    if failed and not args.save:
        print(f"\nSlower than stored by more than {TOLERANCE:.0%}: {'; '.join(failed)}. Run it again to be sure.")
        print(f"If that is as it should be, store the new ratios: --save (in {args.store})")
    return 1 if failed and not args.save else 0


if __name__ == "__main__":
    sys.exit(main())

"""Uses loaders for an hour in every way, and shows that nothing stays behind.

    python -m benchmarks.soak DATASET --minutes 60 [--json RESULT]

Several threads open loaders, of all transforms, orders and caches, read them, and leave them in all the ways of
`benchmarks.soak_uses`. Every batch is held against the pure order and against what the same sample looked like before.
After each round, when all threads have ended, open files, threads, files in the scratch folder and memory are looked
at. Counts must be what they were after the first rounds; memory must not grow by a line through all looks behind the
first ten minutes, in which allocators find their sizes, so shorter runs say nothing of it. Exit code 1: a leak.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import stoker
from benchmarks.soak_looks import COUNTED, MEASURED, Look, Looking, growing, trend
from benchmarks.soak_uses import USES, Place

THREADS = 3
USES_A_ROUND = 6
WARM_UP_SECONDS = 600.0
LEAST_ROUNDS = 8
PRINT_SECONDS = 30.0


def damaged_copy(dataset: str, folder: Path) -> Path:
    """A copy of a dataset with a byte of a payload changed."""
    shutil.copytree(dataset, folder)
    shard = stoker.open(folder, "train").shards[-1].local_path
    content = bytearray(shard.read_bytes())
    content[-100] ^= 1
    shard.write_bytes(content)
    return folder


def use_many(place: Place, seed: int, errors: list[BaseException]) -> None:
    """What one thread does in a round."""
    random = Random(seed)
    try:
        for _ in range(USES_A_ROUND):
            random.choice(USES)(place, random)
    except BaseException as error:  # noqa: BLE001 - the main thread raises it
        errors.append(error)


def run_round(place: Place, number: int) -> None:
    """Run the threads of one round.

    Raises:
        BaseException: What one of them raised.
    """
    errors: list[BaseException] = []
    threads = [
        threading.Thread(target=use_many, args=(place, number * THREADS + one, errors), daemon=one == 0)
        for one in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def soak(place: Place, seconds: float) -> list[Look]:
    """Run rounds for so long; return the looks behind them."""
    looking, looks = Looking(place.scratch), []
    began = printed = time.monotonic()
    number = 0
    while time.monotonic() - began < seconds or number < LEAST_ROUNDS:
        run_round(place, number)
        number += 1
        looks.append(looking.look())
        if time.monotonic() - printed > PRINT_SECONDS:
            printed = time.monotonic()
            print_looks(place, looks, seconds - (printed - began))
    return looks


def print_looks(place: Place, looks: list[Look], left: float) -> None:
    """One line of progress."""
    look = looks[-1]
    print(
        f"{look.seconds:7.0f} s  {len(looks):6} rounds  {place.samples:9,} samples  "
        f"{place.samples / look.seconds:7,.0f} a second  {look.descriptors} files  {look.threads} threads  "
        f"{look.resident_bytes / 2**20:.1f} MiB resident  {look.heap_bytes / 2**20:.2f} MiB heap  ETA {left:.0f} s",
        file=sys.stderr, flush=True,
    )  # fmt: skip


def judge(place: Place, looks: list[Look]) -> dict[str, Any]:
    """Say what has grown."""
    settled = looks[2:]
    warm = [look for look in settled if look.seconds > WARM_UP_SECONDS]
    trends = [trend(warm, name) for name in MEASURED]
    leaks = [found for name in COUNTED if (found := growing(settled, name))]
    leaks += [f"{one.of}: at least {one.least:,.0f} more in an hour" for one in trends if one.leaks]
    return {
        "seconds": looks[-1].seconds,
        "rounds": len(looks),
        "uses": len(looks) * THREADS * USES_A_ROUND,
        "samples": place.samples,
        "first": asdict(settled[0]),
        "last": asdict(settled[-1]),
        "trends": [asdict(one) for one in trends],
        "leaks": leaks,
    }


def run(dataset: str, seconds: float) -> dict[str, Any]:
    """Soak a dataset for so long; return what was found."""
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        scratch = Path(folder, "scratch")
        scratch.mkdir()
        place = Place(dataset, damaged_copy(dataset, Path(folder, "damaged")), scratch)
        return judge(place, soak(place, seconds))


def main() -> int:
    """Soak, and print; 1 if something leaks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--json", type=Path, help="where the result goes")
    args = parser.parse_args()
    result = run(args.dataset, 60 * args.minutes) | {"pid": os.getpid()}
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{result['rounds']:,} rounds, {result['uses']:,} uses, {result['samples']:,} samples")
    for one in result["trends"]:
        print(f"{one['of']:>16}: {one['an_hour']:+12,.0f} an hour, at least {one['least']:+12,.0f}")
    for leak in result["leaks"]:
        print(f"LEAK {leak}")
    return int(bool(result["leaks"]))


if __name__ == "__main__":
    sys.exit(main())

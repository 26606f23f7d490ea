"""Resuming with real processes: ranks are killed at every step of an epoch and go on as other ranks.

python benchmarks/killed.py DATASET [--limit 120] [--every 1]

For every step of an epoch: the ranks of one topology run as processes of their own and are killed with SIGKILL after
that step; the ranks of the next topology go on from the last state that was written, up to the end of the epoch. Every
sample must have come exactly once, with the pixels of an uninterrupted epoch.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import stoker
from stoker import _native

TRANSFORM = stoker.RandomResizedCrop(64, hflip=0.5, color_jitter=stoker.ColorJitter(0.4, 0.4, 0.4, 0.1))
CHANGES = [((1, 7), (3, 7)), ((3, 7), (2, 32)), ((2, 32), (8, 7)), ((8, 7), (1, 32))]
TAILS = ("short", "drop", "pad", "wrap")


def loader(dataset: str, tail: Any, topology: tuple[int, int], rank: int) -> stoker.Loader:
    """One rank's loader, of which nothing but the course is the same from run to run."""
    world, size = topology
    return stoker.Loader(
        stoker.open(dataset, "train"), batch_size=size, transform=TRANSFORM, shuffle=True, seed=17, tail=tail,
        rank=rank, world_size=world, threads=1 + (rank + world) % 3, prefetch=1 + size % 4,
    )  # fmt: skip


def run_rank(dataset: str, tail: str, topology: tuple[int, int], rank: int, scratch: Path, steps: int) -> None:
    """Consume ``steps`` steps from the state that lies there, telling each, and wait to be killed."""
    with loader(dataset, tail, topology, rank) as batches, (scratch / f"rank-{rank}").open("a") as written:
        state = json.loads((scratch / "state").read_text())
        batches.load_state_dict(state)
        for number, batch in enumerate(batches):
            if number == steps:
                break
            sums = [_native.crc32c(pixels.tobytes()) for pixels in batch.images]
            rows = list(zip(batch.indices.tolist(), sums, batch.valid.tolist(), strict=True))
            written.write(json.dumps({"rows": rows, "state": batches.state_dict(batch.position)}) + "\n")
            written.flush()
        (scratch / f"done-{rank}").touch()
        signal.pause()


def run_world(dataset: str, tail: str, topology: tuple[int, int], scratch: Path, steps: int) -> list[list[Any]]:
    """Run all ranks, kill them after so many steps; return the samples, and leave the state behind."""
    arguments = [sys.executable, __file__, "--rank", dataset, tail, *map(str, topology), str(scratch), str(steps)]
    ranks = [subprocess.Popen([*arguments, str(rank)]) for rank in range(topology[0])]
    try:
        while not all((scratch / f"done-{rank}").exists() for rank in range(topology[0])):
            time.sleep(0.005)
            if any(process.poll() is not None for process in ranks):
                raise RuntimeError("a rank has ended by itself")
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    written = []
    for rank in range(topology[0]):
        written.append([json.loads(line) for line in (scratch / f"rank-{rank}").read_text().splitlines()])
        (scratch / f"rank-{rank}").unlink()
        (scratch / f"done-{rank}").unlink()
    assert len({len(lines) for lines in written}) == 1, "ranks made different numbers of steps"
    for states in zip(*([line["state"] for line in lines] for lines in written), strict=True):
        assert all(state == states[0] for state in states), "ranks have different states"
        assert len(json.dumps(states[0])) < 200
    if written[0]:
        (scratch / "state").write_text(json.dumps(written[0][-1]["state"]))
    return [row for step in zip(*written, strict=True) for line in step for row in line["rows"]]


def check(tail: str, samples: list[list[Any]], whole: dict[int, int], wanted: set[int]) -> None:
    """Refuse a sequence that the tail does not allow."""
    for key, pixels, _ in samples:
        assert whole[key] == pixels, f"sample {key} has other pixels"
    counted = [key for key, _, valid in samples if valid]
    assert len(set(counted)) == len(counted) or tail == "wrap", "a sample came twice"
    assert wanted <= set(counted) or tail == "drop", "a sample was lost"
    assert set(counted) <= wanted or tail == "wrap", "a sample came that was done before"


def main() -> None:
    """Run every change at every step, and print a table."""
    if sys.argv[1:2] == ["--rank"]:
        dataset, tail, *topology, scratch, steps, rank = sys.argv[2:]
        return run_rank(dataset, tail, (int(topology[0]), int(topology[1])), int(rank), Path(scratch), int(steps))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--limit", type=int, default=120, help="samples of the epoch's end that are played")
    parser.add_argument("--every", type=int, default=1, help="kill after every so many steps")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with loader(args.dataset, "short", (1, 32), 0) as batches:
        size = len(batches.dataset)
        begin = batches.state_dict() | {"epoch": 1, "consumed": max(0, size - args.limit)}
        batches.load_state_dict(begin)
        wanted = {key for batch in batches for key in batch.indices.tolist()}
        batches.set_epoch(1)
        whole = {
            key: _native.crc32c(pixels.tobytes())
            for batch in batches
            for key, pixels in zip(batch.indices.tolist(), batch.images, strict=True)
        }
    print(f"{'before':>8} {'after':>8} {'tail':>6} {'kills':>6} {'processes':>10} {'samples':>8}")
    for before, after in CHANGES:
        for tail in TAILS:
            play(args, tail, (before, after), (begin, wanted, whole))
    return None


def play(args: Any, tail: str, change: tuple[Any, Any], epoch: tuple[Any, Any, Any]) -> None:
    """One row of the table."""
    begin, wanted, whole = epoch
    (world, size), after = change
    steps = -(-len(wanted) // (world * size))
    stops = range(0, steps + 1, args.every)
    samples = 0
    for stop in stops:
        with tempfile.TemporaryDirectory() as temporary:
            scratch = Path(temporary)
            (scratch / "state").write_text(json.dumps(begin))
            seen = run_world(args.dataset, tail, change[0], scratch, stop)
            if json.loads((scratch / "state").read_text())["epoch"] == begin["epoch"]:
                seen += run_world(args.dataset, tail, after, scratch, 10**9)
            check(tail, seen, whole, wanted)
            samples += len(seen)
    processes = len(stops) * (world + after[0])
    print(
        f"{world:>4} x {size:<2} {after[0]:>4} x {after[1]:<2} {tail:>6} {len(stops):>6} {processes:>10} {samples:>8,}",
        flush=True,
    )


if __name__ == "__main__":
    main()

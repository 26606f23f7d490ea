"""Trains for hours on several ranks from a store that fails now and then, and shows that nothing grows.

    python -m benchmarks.long_run DATASET --minutes 120 --ranks 4 [--step 0.02] [--json RESULT]

DATASET is copied into a real S3 server. Each rank is a process that reads it through a proxy which answers 503, breaks
connections, cuts, delays and changes answers; the server itself is killed and started again every quarter of an hour.
Ranks stop at the same steps, as a job does at its checkpoints, and each goes on from the state alone, in a new loader
of another batch size, number of threads and cache: none, one in memory, or one on disk that all ranks share. Every
batch is held against the pure order and against what the same sample gives from the local disk.

Between two loaders each rank looks at its open files, threads, scratch files and memory. Exit code 1: a rank failed,
states of ranks differ, a cache outgrew its budget, counts of the second half are higher than those of the first, or
memory grows by a line (`benchmarks.soak`).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any

import stoker
from benchmarks.soak import COUNTED, EPOCHS, Look, Looking, Workload, damaged_copy, memory_trends
from stoker.storage import location
from tests.servers import s3
from tests.servers.faults import Answer, Fault, FaultProxy, Flip, Reset, Stall, Truncate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.storage import Location
    from tests.servers.rules import BeforeAnswer, InAnswer
    from tests.servers.s3 import S3Server

MOST_STEPS = 40
NODE_CACHE = 8 << 20
RESTART_SECONDS = 900.0
LOOK_SECONDS = 10.0
LEAST_LOADERS = 12

Rank = subprocess.Popen[bytes]


def faults() -> list[Fault]:
    """What goes wrong with reads of shards, a few of a hundred requests."""

    def reads(action: BeforeAnswer | InAnswer, probability: float, seed: int) -> Fault:
        return Fault(action, method="GET", path=".tfrecord", probability=probability, seed=seed)

    return [
        reads(Answer(503), 0.01, 1),
        reads(Reset(), 0.01, 2),
        reads(Truncate(1000), 0.005, 3),
        reads(Stall(2.0, at=100), 0.002, 4),
        reads(Flip(), 0.001, 5),  # the same bytes wrong twice running would be an error
    ]


def train(dataset: str, remote: str, scratch: Path, rank: int, ranks: int, until: float, step: float) -> dict[str, Any]:
    """Be one rank: read from checkpoint to checkpoint until a time of the clock, then say what was seen."""
    workload = Workload(dataset, damaged_copy(dataset, scratch / "damaged"), scratch)
    for known in workload.courses:
        with workload.loader(known, batch_size=64) as loader:
            for epoch in range(EPOCHS):
                loader.set_epoch(epoch)
                list(workload.batches(loader, known))
    workload.dataset = stoker.open(remote, "train")
    workload.samples = 0
    caches = [None, stoker.MemoryCache("4MB"), stoker.NodeCache(scratch.parent / "node", NODE_CACHE)]
    looking, looks, course = Looking(scratch), list[Look](), 0
    states: list[tuple[int, int, int]] = []
    looked = -LOOK_SECONDS
    state: dict[str, Any] | None = None
    while len(states) < LEAST_LOADERS or time.time() < until:
        random = Random(len(states))  # the same on every rank
        known = workload.courses[course % len(workload.courses)]
        steps = random.randint(1, MOST_STEPS)
        with workload.loader(
            known,
            batch_size=random.choice([5, 8, 16, 24]),
            rank=rank,
            world_size=ranks,
            threads=random.randint(1, 2),
            prefetch=random.randint(1, 4),
            cache=random.choice(caches),
        ) as loader:
            loader.load_state_dict(state or loader.state_dict())
            for _ in workload.batches(loader, known):
                time.sleep(step)
                steps -= 1
                if not steps:
                    break
            state = json.loads(json.dumps(loader.state_dict()))
        states.append((course, state["epoch"], state["consumed"]))
        if state["epoch"] == EPOCHS:
            state, course = None, course + 1
        if time.monotonic() - looked > LOOK_SECONDS:
            looks.append(looking.look())
            looked = time.monotonic()
    looks.append(looking.look())
    return {
        "rank": rank,
        "pid": os.getpid(),
        "samples": workload.samples,
        "states": states,
        "looks": [asdict(look) for look in looks],
    }


def judge(rank: dict[str, Any]) -> dict[str, Any]:
    """Say what grew in one rank.

    Counts go up and down with the connections to the store, so the median of the second half is held against that of
    the first.
    """
    looks = [Look(**look) for look in rank["looks"]]
    trends, leaks = memory_trends(looks)
    medians: dict[str, tuple[float, float]] = {}
    for name in COUNTED:
        counts = [getattr(look, name) for look in looks]
        medians[name] = median(counts[: len(counts) // 2]), median(counts[len(counts) // 2 :])
        if medians[name][1] > medians[name][0] + 1:
            leaks.append(f"{name}: {medians[name][0]:g} in the first half, {medians[name][1]:g} in the second")
    return {
        "rank": rank["rank"],
        "samples": rank["samples"],
        "loaders": len(rank["states"]),
        "looks": len(looks),
        "first": asdict(looks[0]),
        "last": asdict(looks[-1]),
        "medians": medians,
        "trends": [asdict(trend) for trend in trends],
        "leaks": leaks,
    }


def started(arguments: argparse.Namespace, rank: int, remote: str, folder: Path, until: float) -> Rank:
    """Start a rank, which writes its result as JSON into the folder."""
    scratch = folder / f"rank{rank}"
    scratch.mkdir()
    command = [sys.executable, "-m", "benchmarks.long_run", arguments.dataset, "--step", str(arguments.step)]
    command += ["--ranks", str(arguments.ranks), "--rank", str(rank), "--remote", remote, "--until", str(until)]
    environment = os.environ | {"PYTHONHASHSEED": "0", "STOKER_CACHE_DIR": str(folder / "indexes")}
    with (folder / f"rank{rank}.json").open("w") as result:  # a pipe that nobody reads meanwhile would fill
        return subprocess.Popen([*command, "--scratch", str(scratch)], env=environment, stdout=result)


def watch(ranks: Sequence[Rank], server: S3Server, proxy: FaultProxy, node: Path, until: float) -> int:
    """Restart the server now and then until all ranks have ended; return the highest size of the shared cache."""
    began = restarted = printed = time.monotonic()
    most = 0
    while any(rank.poll() is None for rank in ranks) and time.time() < until + 300:
        time.sleep(1)
        now = time.monotonic()
        most = max(most, sum(path.stat().st_blocks * 512 for path in node.rglob("*") if path.is_file()))
        if any(rank.poll() for rank in ranks):
            break
        if now - restarted > RESTART_SECONDS and time.time() < until - 60:
            server.restart()
            restarted = time.monotonic()
        if now - printed > 60:
            printed = now
            print(
                f"{now - began:7.0f} s  {sum(proxy.traffic.requests.values()):,} requests  "
                f"{sum(proxy.traffic.faults.values()):,} faults  {most / 2**20:.1f} MiB shared cache  "
                f"ETA {max(0.0, until - time.time()):.0f} s",
                file=sys.stderr, flush=True,
            )  # fmt: skip
    return most


def run(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run all ranks, and say what was found."""
    with ExitStack() as stack:
        server = stack.enter_context(s3.running())
        proxy = stack.enter_context(FaultProxy(server.endpoint))
        bucket = server.make_bucket()
        os.environ |= server.environment()
        remote = location(f"s3://{bucket}/dataset")
        copy(Path(arguments.dataset), remote)
        os.environ |= server.environment(proxy.url)
        proxy.faults = faults()
        until = time.time() + 60 * arguments.minutes
        ranks = [started(arguments, rank, str(remote), folder, until) for rank in range(arguments.ranks)]
        try:
            most = watch(ranks, server, proxy, folder / "node", until)
        finally:
            for rank in ranks:
                if rank.poll():
                    for other in ranks:
                        other.kill()
        codes = [rank.wait(timeout=60) for rank in ranks]
        printed = [(folder / f"rank{rank}.json").read_text() for rank in range(arguments.ranks)]
        leaks = [f"rank {at} ended with {code}" for at, code in enumerate(codes) if code]
        results = [json.loads(text) for text, code in zip(printed, codes, strict=True) if not code]
        common = min((len(result["states"]) for result in results), default=0)
        if any(result["states"][:common] != results[0]["states"][:common] for result in results):
            leaks.append("states of the ranks differ")
        if most > NODE_CACHE:
            leaks.append(f"the shared cache took {most:,} bytes, its budget is {NODE_CACHE:,}")
        judged = [judge(result) for result in results]
        leaks += [f"rank {rank['rank']}: {leak}" for rank in judged for leak in rank["leaks"]]
        return {
            "minutes": arguments.minutes,
            "requests": dict(proxy.traffic.requests),
            "faults": dict(proxy.traffic.faults),
            "shared_cache_bytes": most,
            "states_in_common": common,
            "ranks": judged,
            "leaks": leaks,
        }


def copy(local: Path, remote: Location) -> None:
    """Put all files of a dataset into a store."""
    for path in sorted(local.rglob("*")):
        if path.is_file():
            (remote / path.relative_to(local).as_posix()).write_atomically(path.read_bytes())


def main() -> int:
    """Run, and print; 1 if something grew or went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--step", type=float, default=0.02, metavar="SECONDS", help="what a training step takes (0.02)")
    parser.add_argument("--json", type=Path, help="where the result goes")
    for name, kind in (("rank", int), ("remote", str), ("until", float), ("scratch", Path)):
        parser.add_argument(f"--{name}", type=kind, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rank is not None:
        print(json.dumps(train(args.dataset, args.remote, args.scratch, args.rank, args.ranks, args.until, args.step)))
        return 0
    with tempfile.TemporaryDirectory(prefix="long-run-") as folder:
        result = run(args, Path(folder))
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{sum(result['requests'].values()):,} requests, faults {result['faults']}")
    for rank in result["ranks"]:
        print(f"rank {rank['rank']}: {rank['loaders']:,} loaders, {rank['samples']:,} samples, {rank['looks']} looks")
        medians = [f"{name} {first:g}, {second:g}" for name, (first, second) in rank["medians"].items()]
        print(f"  medians of the first half and the second: {', '.join(medians)}")
        for each in rank["trends"]:
            print(f"  {each['of']:>16}: {each['an_hour']:+12,.0f} an hour, at least {each['least']:+12,.0f}")
    for leak in result["leaks"]:
        print(f"LEAK {leak}")
    return int(bool(result["leaks"]))


if __name__ == "__main__":
    sys.exit(main())

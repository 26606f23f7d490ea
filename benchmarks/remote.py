"""Feeding from a bucket against feeding from this machine's disk, with latency added to every request.

python -m benchmarks.remote DATASET [--rounds 5] [--latencies 5,50,200] [--budget 64MB] [--block 32] [--window 8]
    [--connections 32] [--out results.json]

DATASET is what ``stoker build`` made; it is copied into a bucket of a real S3 server (tests/servers) on this machine.
Every way takes its turn in every round, with a loader of its own, so that nothing is read ahead while others run; a
ratio is that of two turns of one round. The dataset should be several times as large as the budget.

Latency is a pure delay: each request waits so long before it is made, which costs no CPU. The server runs on the same
CPUs as the loader, as no server of a cloud does, so that all CPU seconds per image are printed, too: those of this
process, and those of the server.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import stoker
from stoker.storage import location, objects
from stoker.storage.objects import S3Backend
from tests.servers import s3

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.s3 import S3Server

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Way:
    """One way to read.

    Attributes:
        name: What the table calls it.
        uri: Dataset to open.
        latency: Seconds that are added to each request.
        settings: Of the loader.
        cached: Whether a node cache is kept from turn to turn.
    """

    name: str
    uri: str
    latency: float
    settings: dict[str, Any]
    cached: bool = False


class _Delayed(S3Backend):
    """A bucket that is further away."""

    seconds = 0.0

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """Wait, then read."""
        time.sleep(self.seconds)
        return super().get_range(key, start, length)


def turn(way: Way, batch_size: int, cache: stoker.NodeCache | None) -> dict[str, float]:
    """One epoch with a new loader."""
    _Delayed.seconds = way.latency
    dataset = stoker.open(way.uri, split="train")
    transform = stoker.RandomResizedCrop(224, hflip=0.5)
    with stoker.Loader(
        dataset, batch_size=batch_size, transform=transform, seed=17, cache=cache, **way.settings
    ) as loader:
        wall, own = time.perf_counter(), time.process_time()
        images = sum(len(batch) for batch in loader)
        wall, own = time.perf_counter() - wall, time.process_time() - own
        ranges = loader._engine.ranges
        counts = ranges.counts() if ranges is not None else None
    return {
        "images_per_second": images / wall,
        "cpu_ms_per_image": 1e3 * own / images,
        "requests": counts.requests if counts else 0,
        "mb_read": counts.bytes / 1e6 if counts else 0,
        "held_mb": counts.peak_bytes / 1e6 if counts else 0,
        "unplanned": counts.unplanned if counts else 0,
    }


def server_cpu(server: S3Server) -> float:
    """CPU seconds of the server so far."""
    fields = Path(f"/proc/{server._process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def measured(ways: list[Way], rounds: int, batch_size: int, server: S3Server) -> dict[str, list[dict[str, float]]]:
    """Turns of each way, one in each round; of a way with a cache, the first fills it and is not among them."""
    folder = Path(tempfile.mkdtemp(prefix="stoker-bench-"))
    caches = {way.name: stoker.NodeCache(folder / str(n), "8GB") for n, way in enumerate(ways) if way.cached}
    turns: dict[str, list[dict[str, float]]] = {way.name: [] for way in ways}
    try:
        for way in ways:  # warms pages and connections, and fills caches
            turn(way, batch_size, caches.get(way.name))
        for _ in range(rounds):
            for way in ways:
                before = server_cpu(server)
                figures = turn(way, batch_size, caches.get(way.name))
                figures["server_cpu_seconds"] = server_cpu(server) - before
                turns[way.name].append(figures)
    finally:
        shutil.rmtree(folder)
    return turns


def ways_of(local: str, remote: str, options: argparse.Namespace) -> list[Way]:
    """All ways, the local one of each order first."""
    ahead = {"read_ahead": stoker.ReadAhead(budget=options.budget, connections=options.connections)}
    block = stoker.BlockShuffle(options.block, options.window)
    ways = []
    for order, shuffle in (("full", True), ("block", block)):
        ways.append(Way(f"{order} local", local, 0, {"shuffle": shuffle}))
        ways += [
            Way(f"{order} {ms} ms", remote, ms / 1e3, {"shuffle": shuffle} | ahead) for ms in [0, *options.latencies]
        ]
    ms = options.latencies[0]
    ways.append(Way(f"block {ms} ms, node cache", remote, ms / 1e3, {"shuffle": block} | ahead, cached=True))
    return ways


def table(ways: list[Way], turns: dict[str, list[dict[str, float]]]) -> Iterator[str]:
    """Lines for people."""
    columns = ("images/s", "spread", "of local", "CPU ms/img", "server", "requests", "MB", "held MB", "unplanned")
    yield f"{'way':<24}" + "".join(f"{column:>11}" for column in columns)
    for way in ways:
        mine, base = turns[way.name], turns[f"{way.name.split()[0]} local"]
        speeds = [figures["images_per_second"] for figures in mine]
        ratio = statistics.median(
            a["images_per_second"] / b["images_per_second"] for a, b in zip(mine, base, strict=True)
        )
        middle = {name: statistics.median(figures[name] for figures in mine) for name in mine[0]}
        spread = (max(speeds) - min(speeds)) / middle["images_per_second"]
        yield (
            f"{way.name:<24}{middle['images_per_second']:>11.0f}{spread:>11.0%}{ratio:>11.2f}"
            f"{middle['cpu_ms_per_image']:>11.2f}{middle['server_cpu_seconds']:>10.1f}s{middle['requests']:>11.0f}"
            f"{middle['mb_read']:>11.0f}{middle['held_mb']:>11.0f}{middle['unplanned']:>11.0f}"
        )


@contextmanager
def bucket_with(dataset: Path) -> Iterator[tuple[S3Server, str]]:
    """A server with a copy of a dataset, and where that is; this process reads it with `_Delayed`."""
    objects.S3Backend = _Delayed  # type: ignore[misc]
    with s3.running() as server, tempfile.TemporaryDirectory() as indexes:
        os.environ.update(server.environment(), STOKER_CACHE_DIR=indexes)
        folder = location(f"s3://{server.make_bucket()}/dataset")
        for path in (path for path in dataset.rglob("*") if path.is_file()):
            (folder / path.relative_to(dataset).as_posix()).write_atomically(path.read_bytes())
        yield server, str(folder)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--latencies", type=lambda text: [int(part) for part in text.split(",")], default=[5, 50, 200])
    parser.add_argument("--budget", default="64MB")
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--window", type=int, default=8)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with bucket_with(options.dataset) as (server, remote):
        ways = ways_of(str(options.dataset), remote, options)
        turns = measured(ways, options.rounds, options.batch_size, server)
    print("\n".join(table(ways, turns)))
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")
    if options.out:
        options.out.write_text(json.dumps(turns, indent=1))


if __name__ == "__main__":
    main()

"""What the simulation predicts, against a real loader and a real S3 server with latency added to every request.

python -m benchmarks.simulation_check DATASET [--rounds 3] [--out results.json]

DATASET is what ``stoker build`` made. The simulation is given what can be measured of a machine and a store without a
loader: the mean length of a record, and how long requests of the planned length take over as many connections while
nothing is decoded. It is also given one measurement of a loader: its images per second from the bucket without added
latency. All else is computed. A whole epoch is run, including its first batch.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import stoker
from benchmarks.remote import Way, _Delayed, bucket_with, turn
from benchmarks.simulation import Data, Ranks, Span, Storage, simulate
from stoker.config import available_cpus
from stoker.storage import StoreLocation

if TYPE_CHECKING:
    from stoker.loader.dataset import Dataset

BATCH = 32


@dataclass(frozen=True)
class Setting:
    """One thing to predict and to measure."""

    name: str
    latency: float
    connections: int
    budget: str
    shuffle: bool | stoker.BlockShuffle = True

    def read_ahead(self) -> stoker.ReadAhead:
        """Return the settings that loader and simulation share."""
        return stoker.ReadAhead(self.budget, self.connections)


SETTINGS = (
    Setting("full, 20 ms, 4 connections", 0.02, 4, "64MB"),
    Setting("full, 50 ms, 8 connections", 0.05, 8, "64MB"),
    Setting("full, 50 ms, 32 connections", 0.05, 32, "64MB"),
    Setting("full, 200 ms, 32 connections", 0.2, 32, "64MB"),
    Setting("full, 200 ms, 32 connections, 4 MB", 0.2, 32, "4MB"),
    Setting("block 16 x 4, 200 ms, 4 connections", 0.2, 4, "64MB", stoker.BlockShuffle(16, 4)),
    Setting("block 16 x 4, 200 ms, 16 connections, 8 MB", 0.2, 16, "8MB", stoker.BlockShuffle(16, 4)),
)


def of_dataset(dataset: Dataset) -> Data:
    """Describe a dataset for the simulation."""
    total = sum(shard.size_bytes for shard in dataset.shards)
    return Data(len(dataset), round(total / len(dataset)), -(-len(dataset) // len(dataset.shards)))


def seconds_of_a_request(dataset: Dataset, setting: Setting, length: int) -> float:
    """Mean of requests of that length over as many connections as the setting has, while nothing is decoded."""
    path = dataset.shards[0].path
    assert isinstance(path, StoreLocation)
    _Delayed.seconds = setting.latency
    end = time.perf_counter() + max(1.0, 6 * setting.latency)

    def ask() -> list[float]:
        taken = []
        while (began := time.perf_counter()) < end:
            path.store.read(path.key, 0, length)
            taken.append(time.perf_counter() - began)
        return taken

    with ThreadPoolExecutor(setting.connections) as pool:
        asked = [pool.submit(ask) for _ in range(setting.connections)]
        return statistics.mean(second for future in asked for second in future.result())


def measured(uri: str, setting: Setting, rounds: int) -> list[float]:
    """Images a second of whole epochs."""
    way = Way(setting.name, uri, setting.latency, {"shuffle": setting.shuffle, "read_ahead": setting.read_ahead()})
    return [turn(way, BATCH, None)["images_per_second"] for _ in range(rounds)]


def predicted(dataset: Dataset, setting: Setting, rate: float) -> float:
    """Return the images per second that the simulation predicts."""
    data = of_dataset(dataset)
    ranks = Ranks(batch_size=BATCH, rate=rate, threads=available_cpus(), read_ahead=setting.read_ahead())
    span = Span(setting.shuffle, seed=17, steps=max(2, data.records // BATCH))
    asked = simulate(data, ranks, Storage(latency=setting.latency), span)
    length = round(asked.bytes_of_epoch / asked.requests_of_epoch)
    latency = seconds_of_a_request(dataset, setting, length)
    rank = simulate(data, ranks, Storage(latency=latency), span).ranks[0]
    return rank.samples / (rank.first_batch + (rank.samples - BATCH) / rank.images_per_second)


def main() -> None:
    """Measure, predict, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    with bucket_with(options.dataset) as (_, uri):
        dataset = stoker.open(uri, split="train")
        data = of_dataset(dataset)
        near = Setting("nothing added", 0.0, 32, "64MB")
        rate = statistics.median(measured(uri, near, options.rounds + 1)[1:])
        print(f"{data}: {rate:.0f} images/s when nothing is added")
        for setting in SETTINGS:
            speeds = measured(uri, setting, options.rounds)
            expected, was = predicted(dataset, setting, rate), statistics.median(speeds)
            rows.append({"setting": setting.name, "measured": speeds, "predicted": expected, "ratio": expected / was})
            print(f"{setting.name:<44} measured {was:7.1f}  predicted {expected:7.1f}  {expected / was - 1:+.0%}")
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()

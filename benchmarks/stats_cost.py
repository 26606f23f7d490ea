"""What the statistics of a loader cost: CPU time of an image with the clocks of the stages on, against off, in turns.

python benchmarks/stats_cost.py DATASET [DATASET ...] [--rounds 100] [--seconds 0.3] [--trace]

One loader reads the same epochs again and again on one thread, the same crops of the same images; turn by turn its
clocks are switched. With --trace a turn that is on also keeps every event, as `stoker.trace` does. Quoted are the
median over pairs of turns with the interval that holds the true one with 95 %, and the ratio of the lowest tenths:
other programs can only make a turn dearer.
"""

from __future__ import annotations

import argparse
import math
import statistics
from typing import TYPE_CHECKING

import stoker

if TYPE_CHECKING:
    from stoker.transforms import Transform


def transform_of(dataset: stoker.Dataset) -> Transform:
    """What there is of a dataset: pixels as they are, or crops of JPEGs."""
    if dataset.schema.image_encoding == "raw":
        return stoker.RawTensor(math.isqrt(len(dataset[0].encoded) // 3))
    return stoker.RandomResizedCrop(224, hflip=0.5)


def turn(loader: stoker.Loader, epochs: int) -> float:
    """CPU microseconds of the decoding thread for an image."""
    loader.set_epoch(0)
    before = loader.stats()
    for _ in range(epochs):
        for _ in loader:
            pass
    done = loader.stats() - before
    assert done.cpu_seconds is not None, "this system does not tell the CPU time of threads"
    return 1e6 * done.cpu_seconds / done.samples


def cost(dataset: stoker.Dataset, rounds: int, seconds: float, *, traced: bool) -> list[tuple[float, float]]:
    """Pairs of turns, on and off; which of them is first alternates."""
    pairs = []
    with stoker.Loader(dataset, batch_size=64, transform=transform_of(dataset), shuffle=True, threads=1) as loader:
        engine, log = loader._engine._native, loader.events()
        epochs = max(1, round(seconds / (turn(loader, 1) * len(dataset) / 1e6)))
        for number in range(rounds):
            spent = {}
            for on in (True, False) if number % 2 else (False, True):
                engine.time_stages(on)
                if traced and on:
                    log.start(1 << 20)
                spent[on] = turn(loader, epochs)
                log.stop()
                log.take()
            pairs.append((spent[True], spent[False]))
    return pairs


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--trace", action="store_true")
    args = parser.parse_args()
    print("| dataset | off: CPU us an image | on | on over off | 95 % | lowest tenths |\n|---|---:|---:|---:|---|---:|")
    for name in args.datasets:
        pairs = cost(stoker.open(name), args.rounds, args.seconds, traced=args.trace)
        ratios = [on / off for on, off in pairs]
        middle, half = statistics.median(ratios), round(0.98 * len(ratios) ** 0.5)  # 1.96 sd of the rank of a median
        low, high = sorted(ratios)[len(ratios) // 2 - half], sorted(ratios)[len(ratios) // 2 + half]
        columns = list(zip(*pairs, strict=True))
        on, off = map(statistics.median, columns)
        least_on, least_off = (statistics.quantiles(column, n=10)[0] for column in columns)
        print(
            f"| {name} | {off:.2f} | {on:.2f} | {middle:.4f} | {low:.4f} to {high:.4f} | {least_on / least_off:.4f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

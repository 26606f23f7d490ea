"""How the loader scales with threads: measured for the threads of this machine, projected to more.

    python benchmarks/scaling.py DATASET [--transform crop|raw:64] [--adapter numpy|torch|jax] [--batch 64]
        [--threads 1 2 64] [--cores 64] [--out r.json]

Measured for each number of threads N, in turns, medians over the rounds:

- ``cpu``: CPU seconds of the whole process per image;
- ``rate``: images per second;
- ``consumer``: CPU seconds of the consuming thread per batch. It is all that ever runs with the interpreter's lock,
  and all of ``submit`` and ``next``, so it bounds both from above;
- ``switches``: how often a thread of the process gave its core up, per batch. A lock that is not free puts a thread to
  sleep, so this counts waiting for locks, together with waiting for work.

More threads than the machine has CPUs show what it takes to wake and to serve them; their rates are not projected.

A batch of B images takes these locks: the pool's mutex once a thread, at most B times, and once more; the mutex of the
batches three times (submit, last sample, next), that of the look-ahead twice, that of the buffers twice. Nothing is
locked per image: within a batch a sample is claimed by one atomic addition, open files and indexes are found by one
atomic load.

The projection. With S the serial seconds of an image, ``s = S / T1`` its share of the time T1 that one thread takes,
and N cores, Amdahl's law bounds the speed-up of the decoding threads, and the consumer bounds the rate of batches:

    rate(N) = min( N / (T1 * (1 + s * (N - 1))),  B / consumer )

S is measured, not assumed: from the rates at one thread and at the most threads N1 measured,
``s = (N1 * rate(1) / rate(N1) - 1) / (N1 - 1)``, not below 0. That counts as serial whatever keeps N1 threads from
being N1 times as fast, the machine's shared memory bandwidth and its other tenants included, so it is a pessimist's
figure; the consumer's thread shares the cores as well. The line ``locks only`` takes for S 0.1 microseconds a lock, as
long as a line of the cache takes from core to core. ``busy`` is the share of its time in which the one consumer, or all
locks together, would be at work if N cores decoded without any loss: 1 is the end.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import stoker

LOCKS_PER_BATCH = 8  # beside one for each thread
SECONDS_PER_LOCK = 1e-7
WARM_UP = 8


@dataclass(frozen=True)
class Turn:
    """One measurement; see the module's text."""

    threads: int
    rate: float
    cpu: float
    consumer: float
    switches: float


def measure(adapter: Any, dataset: stoker.Dataset, settings: dict[str, Any], threads: int, seconds: float) -> Turn:
    """Run one loader for some seconds."""
    batch = settings["batch_size"]
    with adapter(dataset, shuffle=True, seed=17, tail="wrap", threads=threads, **settings) as loader:
        batches = itertools.chain.from_iterable(itertools.repeat(loader))
        for _ in itertools.islice(batches, WARM_UP):
            pass
        before, own, began = resource.getrusage(resource.RUSAGE_SELF), time.thread_time(), time.perf_counter()
        count = 0
        while time.perf_counter() - began < seconds:
            next(batches)
            count += 1
        wall, own = time.perf_counter() - began, time.thread_time() - own
        after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    switches = after.ru_nvcsw - before.ru_nvcsw
    return Turn(threads, count * batch / wall, cpu / count / batch, own / count, switches / count)


def median_of(turns: list[Turn]) -> Turn:
    """Medians of each figure."""
    middle = {key: statistics.median(getattr(turn, key) for turn in turns) for key in ("rate", "cpu", "consumer")}
    return Turn(turns[0].threads, **middle, switches=statistics.median(turn.switches for turn in turns))


def projected(single: Turn, serial: float, batch: int, cores: int) -> float:
    """Images per second of so many cores, if a share ``serial`` of the work of one thread is."""
    return min(cores * single.rate / (1 + serial * (cores - 1)), batch / single.consumer)


def serial_share(single: Turn, most: Turn) -> float:
    """The share of the work that does not get faster with threads, as measured."""
    return max(0.0, (most.threads * single.rate / most.rate - 1) / (most.threads - 1))


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--transform", default="crop", help="crop, or raw:SIZE for records of pixels")
    parser.add_argument("--adapter", choices=("numpy", "torch", "jax"), default="numpy")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--cores", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    raw = args.transform.removeprefix("raw:")
    transform = stoker.RandomResizedCrop(224, hflip=0.5) if args.transform == "crop" else stoker.RawTensor(int(raw))
    if args.adapter == "numpy":
        adapter: Any = stoker.Loader
    else:
        adapter = stoker.torch.DataLoader if args.adapter == "torch" else stoker.jax.batches
    settings = {"batch_size": args.batch, "transform": transform}
    train = stoker.open(args.dataset, "train")
    turns: dict[int, list[Turn]] = {threads: [] for threads in sorted(args.threads)}
    for _ in range(args.rounds):
        for threads, measured in turns.items():
            measured.append(measure(adapter, train, settings, threads, args.seconds))
    medians = [median_of(measured) for measured in turns.values()]
    for turn in medians:
        print(
            f"{turn.threads} threads: {turn.rate:.0f} images/s, {1e6 * turn.cpu:.2f} us of CPU an image, "
            f"{1e6 * turn.consumer:.0f} us of the consumer a batch, {turn.switches:.1f} switches a batch"
        )
    single, most = medians[0], [turn for turn in medians if turn.threads <= (os.cpu_count() or 1)][-1]
    locks = (LOCKS_PER_BATCH + min(args.cores, args.batch)) * SECONDS_PER_LOCK / args.batch
    images = args.cores / single.cpu
    for turn in medians:
        busy = turn.consumer / args.batch * images
        print(
            f"{args.cores} cores, {images:.0f} images/s: the consumer is busy {busy:.3f}, as of {turn.threads} threads"
        )
    print(f"{args.cores} cores, {images:.0f} images/s: all locks are busy {locks * images:.4f}")
    locks *= single.rate
    shares = {"locks only": locks} if most is single else {"measured": serial_share(single, most), "locks only": locks}
    for name, share in shares.items():
        rate = projected(single, share, args.batch, args.cores)
        bound = "the consumer" if rate == args.batch / single.consumer else "Amdahl"
        print(f"{args.cores} cores, serial share {share:.4f} ({name}): {rate:.0f} images/s, bound by {bound}")
    if args.out:
        report = {"turns": [asdict(turn) for turn in medians], "shares": shares}
        args.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()

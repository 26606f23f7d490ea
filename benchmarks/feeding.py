"""What feeding costs beside decoding: memory over epochs, time with the interpreter's lock, adapters against NumPy.

python benchmarks/feeding.py DATASET [--epochs 20] [--rounds 7] [--seconds 4] [--out results.json]
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import stoker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BATCH = 64
TRANSFORM = stoker.RandomResizedCrop(224, hflip=0.5)
SETTINGS: dict[str, Any] = {"batch_size": BATCH, "transform": TRANSFORM, "shuffle": True, "seed": 17, "tail": "wrap"}


def resident_mb() -> float:
    """Memory of this process that is in RAM."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def memory(train: stoker.Dataset, epochs: int) -> list[float]:
    """Resident memory after each epoch of one loader."""
    resident = []
    with stoker.Loader(train, **SETTINGS) as loader:
        for _ in range(epochs):
            for _batch in loader:
                pass
            resident.append(round(resident_mb(), 1))
    return resident


def held(train: stoker.Dataset, epochs: int = 5) -> dict[str, float]:
    """CPU time of the consuming thread, which is all that ever runs with the lock: an upper bound of its share."""
    with stoker.Loader(train, **SETTINGS) as loader:
        list(itertools.islice(loader, 4))
        own, wall, batches = time.thread_time(), time.perf_counter(), 0
        for _ in range(epochs):
            for _batch in loader:
                batches += 1
        own, wall = time.thread_time() - own, time.perf_counter() - wall
    return {"ms_per_batch": 1e3 * own / batches, "share_of_time": own / wall}


def numpy_batches(train: stoker.Dataset) -> Iterator[Any]:
    """The loader itself."""
    with stoker.Loader(train, **SETTINGS) as loader:
        while True:
            yield from loader


def torch_batches(train: stoker.Dataset) -> Iterator[Any]:
    """Tensors of PyTorch."""
    with stoker.torch.DataLoader(train, **SETTINGS) as loader:
        while True:
            yield from loader


def tensorflow_batches(train: stoker.Dataset) -> Iterator[Any]:
    """Elements of a tf.data.Dataset."""
    yield from stoker.tensorflow.dataset(train, **SETTINGS).repeat()


def jax_batches(train: stoker.Dataset) -> Iterator[Any]:
    """Global arrays on JAX's devices."""
    import jax  # noqa: PLC0415 - only where it is measured
    import numpy as np  # noqa: PLC0415

    mesh = jax.sharding.Mesh(np.array(jax.devices()), "data")
    along = jax.sharding.PartitionSpec("data")  # type: ignore[no-untyped-call]
    sharding = jax.sharding.NamedSharding(mesh, along)
    yield from stoker.jax.batches(train, sharding=sharding, **SETTINGS)


ADAPTERS: dict[str, Callable[[stoker.Dataset], Iterator[Any]]] = {
    "NumPy": numpy_batches,
    "PyTorch": torch_batches,
    "TensorFlow": tensorflow_batches,
    "JAX": jax_batches,
}


def speed(batches: Iterator[Any], seconds: float) -> float:
    """Images a second, after a warm-up."""
    for _ in range(8):
        next(batches)
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        next(batches)
        count += BATCH
    return count / (time.perf_counter() - began)


def adapters(train: stoker.Dataset, rounds: int, seconds: float) -> dict[str, list[float]]:
    """Speeds of all adapters, taking turns; each turn in another order."""
    speeds: dict[str, list[float]] = {name: [] for name in ADAPTERS}
    for number in range(rounds):
        names = list(ADAPTERS)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            batches = ADAPTERS[name](train)
            speeds[name].append(speed(batches, seconds))
            del batches
    return speeds


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    train = stoker.open(args.dataset, "train")
    over_epochs = memory(train, args.epochs)
    print(f"resident MB after epochs 1, 2, ... {args.epochs}: {', '.join(f'{mb:.0f}' for mb in over_epochs)}")
    lock = held(train)
    print(f"consumer's thread: {lock['ms_per_batch']:.3f} ms of CPU a batch, {lock['share_of_time']:.2%} of the time")
    speeds = adapters(train, args.rounds, args.seconds)
    for name, rates in speeds.items():
        ratios = [rate / plain for rate, plain in zip(rates, speeds["NumPy"], strict=True)]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(
            f"{name:10} {statistics.median(rates):6.0f} images/s, {statistics.median(ratios):.2f} of NumPy ({spread})"
        )
    if args.out:
        report = {"memory_mb": over_epochs, "consumer": lock, "images_per_second": speeds}
        args.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()

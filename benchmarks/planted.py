"""Planted bottlenecks: what `stoker.doctor` says of each, and what its remedy brings when it is really applied.

python -m benchmarks.planted PHOTOS [--only NAME,NAME] [--seconds 4] [--rounds 3] [--out results.json]

PHOTOS is a folder of class folders of JPEGs; a few hundred do. Each plant is a loader and a training loop with one
thing wrong. The doctor watches it and must name that; then the loop with the remedy and the one without take turns, and
the median of the ratios of two neighbouring turns is the speed-up. The table is Markdown.

Slow disks are this process started again with a library in front of the C library (needs ``cc``), which makes a read
of a shard take 10 ms: every one, as on a file system without a cache, or with ``misses`` those that the page cache
cannot answer, as on a spinning disk. The store is a real S3 server on this machine (tests/servers), and 50 ms are added
to each request. Where the remedy is a change outside of the input, the table also shows that changing the input brings
nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import stoker
from stoker.cli.main import main as stoker_command
from stoker.inspect.measuring import drop_from_page_cache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stoker import DoctorReport

SIDE = 64
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
MORE = {"threads": 8}
SLOW_READS = "STOKER_PLANTED_SLOW_READS"
LATENCY = 0.05
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef NANOSECONDS
#define NANOSECONDS 10000000
#endif

/* Shards are read from a medium that takes its time: for every read, or for those that memory cannot answer. */
static int is_slow(int file, void *to, size_t size, off_t at) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  if (!strstr(path, ".tfrecord") && !strstr(path, "-of-")) return 0;
  if (strcmp(getenv("STOKER_PLANTED_SLOW_READS"), "misses")) return 1;
  posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM); /* or the kernel reads its neighbours, too */
  struct iovec whole = {to, size};
  return preadv2(file, &whole, 1, at, RWF_NOWAIT) != (ssize_t)size;
}

ssize_t pread(int file, void *to, size_t size, off_t at) {
  static ssize_t (*real)(int, void *, size_t, off_t);
  if (is_slow(file, to, size, at)) nanosleep(&(struct timespec){0, NANOSECONDS}, 0);
  if (!real) real = (ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread");
  return real(file, to, size, at);
}
ssize_t pread64(int file, void *to, size_t size, off_t at) { return pread(file, to, size, at); }
"""


@dataclass(frozen=True)
class Way:
    """A loader and what is done with its batches.

    Attributes:
        dataset: What is read.
        step: Done with each batch.
        settings: Of the loader, over the usual ones.
        around: Entered before the loop, and left after it.
        one_epoch: Whether the loop is over after one epoch.
    """

    dataset: str
    step: Callable[[Any], object]
    settings: dict[str, Any] = field(default_factory=dict)
    around: Callable[[], AbstractContextManager[object]] = nullcontext
    one_epoch: bool = False


@dataclass(frozen=True)
class Plant:
    """One thing that is wrong.

    Attributes:
        name: What it is.
        verdict: What the doctor must say.
        before: With it.
        after: With the remedy.
        applied: What the remedy was, in a few words.
        input_only: The loop as it was, with a faster input, where that is not the remedy.
    """

    name: str
    verdict: str
    before: Way
    after: Way
    applied: str
    input_only: Way | None = None


def nothing(_: Any) -> None:
    """A loop that only takes batches."""


def sleep(seconds: float) -> Callable[[Any], None]:
    """A step on a device: this thread has nothing to do meanwhile."""

    def step(_: Any) -> None:
        time.sleep(seconds)

    return step


def normalise_each(batch: Any) -> np.ndarray[Any, Any]:
    """What many loops do: image by image, on one thread."""
    normalised = [((image / 255.0 - MEAN) / STD).astype(np.float32).transpose(2, 0, 1) for image in batch.images]
    return np.stack(normalised)


def histogram_in_python(batch: Any) -> list[int]:
    """Book-keeping that is written in plain Python."""
    return count_numbers([int(label) for label in batch.labels] * 20_000)


def count_numbers(numbers: list[int]) -> list[int]:
    """How often each number is there."""
    counts = [0] * 1000
    for number in numbers:
        counts[number % 1000] += 1
    return counts


def histogram_in_numpy(batch: Any) -> np.ndarray[Any, Any]:
    """The same, vectorised."""
    return np.bincount(np.tile(batch.labels, 20_000) % 1000, minlength=1000)


def small_operations(batch: Any) -> None:
    """A step of many short operations, each of which releases the interpreter's lock and takes it again."""
    for _ in range(100):
        np.sqrt(batch.images.astype(np.float32))


@contextmanager
def spinning() -> Iterator[None]:
    """A thread that does something else in Python all the time."""
    over = threading.Event()

    def write_logs() -> None:
        lines = 0
        while not over.is_set():
            lines += 1

    thread = threading.Thread(target=write_logs, name="log-writer")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def spinning_elsewhere() -> Iterator[None]:
    """The same in a process of its own."""
    process = subprocess.Popen([sys.executable, "-c", "lines = 0\nwhile True: lines += 1"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def shards_of(dataset: str) -> list[Path]:
    """The files of a dataset."""
    return [shard.local_path for shard in stoker.open(dataset, split="train").shards]


def dropped(dataset: str) -> Callable[[], AbstractContextManager[object]]:
    """Before: the shards are not in memory."""

    @contextmanager
    def around() -> Iterator[None]:
        drop_from_page_cache(shards_of(dataset))
        yield

    return around


def read_first(dataset: str) -> Callable[[], AbstractContextManager[object]]:
    """After: they are not, and are read in one go, as ``cat`` does."""

    @contextmanager
    def around() -> Iterator[None]:
        shards = shards_of(dataset)
        drop_from_page_cache(shards)
        subprocess.run(["cat", *map(str, shards)], stdout=subprocess.DEVNULL, check=True)
        yield

    return around


def plants(jpeg: str, remote: str | None) -> list[Plant]:
    """The plants of this process.

    Args:
        jpeg: A dataset of JPEGs.
        remote: A copy of the first in a store; None where there is none.
    """
    single, fast = {"threads": 1}, {"decode": "fast"}
    floats = {"output": stoker.Output("float32", "NCHW", MEAN, STD)}
    plants = [
        Plant(
            "small thread count", "thread-bound", Way(jpeg, nothing, single), Way(jpeg, nothing), "threads= left out"
        ),
        Plant(
            "heavy consumer",
            "consumer-bound",
            Way(jpeg, sleep(0.2)),
            Way(jpeg, sleep(0.1)),
            "a step twice as fast",
            Way(jpeg, sleep(0.2), fast),
        ),
        Plant(
            "slow user transform",
            "transform-bound",
            Way(jpeg, normalise_each, {"transform": stoker.RandomResizedCrop(224), "decode": "fast", "prefetch": 4}),
            Way(jpeg, nothing, {"transform": stoker.RandomResizedCrop(224), "decode": "fast", "prefetch": 4} | floats),
            "the loader's float output",
        ),
        Plant(
            "GIL held by another thread",
            "gil-bound",
            Way(jpeg, small_operations, around=spinning),
            Way(jpeg, small_operations, around=spinning_elsewhere),
            "the thread as a process",
        ),
        Plant(
            "GIL held by the consumer",
            "gil-bound",
            Way(jpeg, histogram_in_python),
            Way(jpeg, histogram_in_numpy),
            "the function vectorised",
        ),
    ]
    if remote is not None:
        few, many = ({"read_ahead": stoker.ReadAhead("4MB", count)} for count in (4, 16))
        plants.append(
            Plant(
                "slow store", "storage-bound", Way(remote, nothing, few), Way(remote, nothing, many), "16 connections"
            )
        )
    return plants


def plant_of_a_slow_disk(kind: str, dataset: str) -> Plant:
    """The plant of a process with slow reads."""
    if kind == "always":
        return Plant("slow disk", "storage-bound", Way(dataset, nothing), Way(dataset, nothing, MORE), "threads=8")
    pixels = {"transform": stoker.RawTensor(256), "batch_size": 16}
    return Plant(
        "cold cache",
        "cold-cache",
        Way(dataset, nothing, pixels, dropped(dataset), one_epoch=True),
        Way(dataset, nothing, pixels, read_first(dataset), one_epoch=True),
        "cat SHARDS > /dev/null before the epoch",
    )


def loader_of(way: Way) -> stoker.Loader:
    """Return the loader of a way."""
    transform = stoker.RandomResizedCrop(SIDE, hflip=0.5)
    usual: dict[str, Any] = {"batch_size": 32, "transform": transform, "shuffle": True, "tail": "drop"}
    data: Any = stoker.open(way.dataset, split="train")
    settings = usual | way.settings
    if not way.one_epoch:
        data = stoker.mix([data], samples_per_epoch=max(len(data), 200 * int(settings["batch_size"])))
    return stoker.Loader(data, **settings)


def loop(way: Way, loader: stoker.Loader, seconds: float) -> float:
    """Train; return images a second, without the first batches unless it is one epoch only."""
    dropped_batches = 0 if way.one_epoch else 4
    began, images = time.perf_counter(), 0
    for number, batch in enumerate(
        itertools.chain.from_iterable(iter(loader) for _ in range(1 if way.one_epoch else 99))
    ):
        if number == dropped_batches:
            began, images = time.perf_counter(), 0
        way.step(batch)
        images += len(batch)
        if not way.one_epoch and number > dropped_batches + 2 and time.perf_counter() - began > seconds:
            break
    return images / (time.perf_counter() - began)


def diagnosed(way: Way, seconds: float) -> DoctorReport:
    """Watch a way."""
    with way.around(), loader_of(way) as loader, stoker.doctor(loader, quiet=True) as doctor:
        loop(way, loader, seconds)
    return doctor.report


def speed(way: Way, seconds: float) -> float:
    """Images a second of a way, by itself."""
    with way.around(), loader_of(way) as loader:
        return loop(way, loader, seconds)


def measured(plant: Plant, seconds: float, rounds: int) -> dict[str, Any]:
    """The doctor's verdict of a plant, and the speed-up of its remedy."""
    report = diagnosed(plant.before, seconds)
    before, after, other = [], [], []
    for _ in range(rounds):
        before.append(speed(plant.before, seconds))
        after.append(speed(plant.after, seconds))
        if plant.input_only is not None:
            other.append(speed(plant.input_only, seconds))
    return {
        "plant": plant.name,
        "expected": plant.verdict,
        "report": report.document(),
        "applied": plant.applied,
        "before": before,
        "after": after,
        "speedup": statistics.median(b / a for a, b in zip(before, after, strict=True)),
        "input_only": statistics.median(b / a for a, b in zip(before, other, strict=True)) if other else None,
    }


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Lines of Markdown."""
    yield "| plant | verdict | remedy | applied | before | after | speed-up | input alone |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in rows:
        report = row["report"]
        verdict = report["verdict"] if report["verdict"] == row["expected"] else f"**{report['verdict']}**"
        before, after = (f"{statistics.median(row[name]):.0f}/s" for name in ("before", "after"))
        alone = f"{row['input_only']:.2f}x" if row["input_only"] else ""
        cells = (
            row["plant"],
            verdict,
            report["remedy"],
            row["applied"],
            before,
            after,
            f"{row['speedup']:.2f}x",
            alone,
        )
        yield "| " + " | ".join(cells) + " |"


def with_slow_reads(kind: str, dataset: str, options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """A plant in a process whose reads are slow."""
    source, library, out = folder / "slow.c", folder / "slow.so", folder / "slow.json"
    source.write_text(SHIM)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    command = [sys.executable, "-m", "benchmarks.planted", dataset, "--out", str(out)]
    command += ["--seconds", str(options.seconds), "--rounds", str(options.rounds)]
    subprocess.run(command, check=True, env=os.environ | {"LD_PRELOAD": str(library), SLOW_READS: kind})
    rows: list[dict[str, Any]] = json.loads(out.read_text())
    return rows


@contextmanager
def in_a_store(dataset: str) -> Iterator[str]:
    """A copy of a dataset in a store 50 ms away."""
    from benchmarks import remote  # noqa: PLC0415 - needs the server's package, and only here

    remote._Delayed.seconds = LATENCY
    with remote.bucket_with(Path(dataset)) as (_, uri):
        yield uri


def build_datasets(photos: str, folder: Path) -> tuple[str, str]:
    """Build a dataset of JPEGs, and a larger one of pixels."""
    jpeg, raw, many = str(folder / "jpeg"), str(folder / "raw"), folder / "many"
    for path in [path for path in Path(photos).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg")]:
        for copy in range(4):
            link = many / path.parent.name / f"{copy}-{path.name}"
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path.resolve())
    assert stoker_command(["build", photos, jpeg, "--shards", "4", "--max-rejects", "1000"]) == 0
    pixels = ["--resize", "exact:256x256", "--encode", "raw", "--preset", "dlbs", "--shards", "4"]
    assert stoker_command(["build", str(many), raw, *pixels, "--max-rejects", "1000"]) == 0
    return jpeg, raw


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos")
    parser.add_argument("--only", type=lambda text: text.split(","), default=[], help="plants whose names have this")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    options = parsed()
    wanted: Callable[[str], bool] = lambda name: not options.only or any(part in name for part in options.only)  # noqa: E731
    if SLOW_READS in os.environ:
        plant = plant_of_a_slow_disk(os.environ[SLOW_READS], options.photos)
        rows = [measured(plant, options.seconds, options.rounds)]
    else:
        with tempfile.TemporaryDirectory(prefix="stoker-planted-") as temporary, contextlib.ExitStack() as stack:
            folder = Path(temporary)
            jpeg, raw = build_datasets(options.photos, folder)
            remote = stack.enter_context(in_a_store(jpeg)) if wanted("slow store") else None
            chosen = [plant for plant in plants(jpeg, remote) if wanted(plant.name)]
            rows = [measured(plant, options.seconds, options.rounds) for plant in chosen]
            for name, kind, dataset in (("slow disk", "always", jpeg), ("cold cache", "misses", raw)):
                rows += with_slow_reads(kind, dataset, options, folder) if wanted(name) else []
        print("\n".join(table(rows)))
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()

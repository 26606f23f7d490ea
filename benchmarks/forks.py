"""Forks a program that loads images on many threads, thousands of times, and shows that no child hangs.

    python -m benchmarks.forks                      # 10,000 forks, half an hour
    python -m benchmarks.forks --forks 400 --local  # without a bucket

The program may open 64 files (200 with a bucket) and reads 240 shards. While its threads fill caches in memory and on
disk, read a folder of images and a bucket, and ask for statistics, its main thread forks. Each child does one of
`ACTIONS` and ends in one of `ENDS`; one that has not ended after a minute hangs, and its stack is printed. Exit code 1:
a child hung, failed or printed something. The bucket is that of a real S3 server (``tests/servers``).
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import io
import itertools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

import stoker
from stoker.cli.main import main as stoker_command
from stoker.errors import ClosedError, StokerError, StorageError
from stoker.loader import BoxOutput
from stoker.storage import location
from tests.servers import s3

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SHARDS = 240
IMAGES = 960
OPEN_FILES = 64
CONNECTIONS = 136  # that may be open besides, where there is a bucket
AT_ONCE = 4
KEPT_CACHES = 128
PAUSE_SECONDS = 0.01  # after a batch: most of the time is for the children
DEADLINE_SECONDS = 60.0
TRANSFORM = stoker.Resize(16)


def write_data(folder: Path) -> None:
    """Write small photographs, a quarter of them no JPEGs, and the dataset that is built of them."""
    random = np.random.default_rng(7)
    for number in range(IMAGES):
        class_folder = folder / "photos" / f"class-{number % 4}"
        class_folder.mkdir(parents=True, exist_ok=True)
        pixels = Image.fromarray(random.integers(0, 256, (20, 24, 3), np.uint8))
        pixels.save(class_folder / f"{number:04d}.{'png' if number % 4 == 3 else 'jpg'}")
    words = ["build", str(folder / "photos"), str(folder / "dataset"), "--shards", str(SHARDS), "--quiet"]
    with contextlib.redirect_stdout(io.StringIO()):
        assert stoker_command(words) == 0


class Load:
    """What the forked program does meanwhile, and what its children find.

    Args:
        folder: As `write_data` made it, and for scratch.
        bucket: URL of a copy of the dataset; empty: nothing is read from a store.

    Attributes:
        train: The dataset of many shards.
        photos: The folder of images.
        remote: The dataset in the bucket.
        images: All images of ``train`` as a loader shows them, by index.
        loader: One of the loaders that are used.
        memory: The cache that is filled.
        node: The cache on disk that is filled.
        samples: How many were loaded.
    """

    def __init__(self, folder: Path, bucket: str) -> None:
        self.folder = folder
        self.train = stoker.open(folder / "dataset")
        self.photos = stoker.open(folder / "photos")
        self.remote = stoker.open(bucket) if bucket else None
        self.images = self._all_images()
        self.loader = stoker.Loader(self.train, 16, shuffle=True, transform=TRANSFORM, threads=2)
        self.memory = stoker.MemoryCache("1MB")
        self.node = stoker.NodeCache(folder / "node-0", "64MB")
        self.samples = 0
        self._stop = threading.Event()
        works = [self._read, self._fill_memory, self._fill_disk, self._read_folder, self._count_objects, self._ask]
        works += [self._read_bucket] if bucket else []
        self._threads = [threading.Thread(target=work, name=work.__name__) for work in works]

    def _all_images(self) -> Any:
        with stoker.Loader(self.train, IMAGES, transform=TRANSFORM) as loader:
            return next(iter(loader)).images

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self.loader.close()

    def check(self, loader: stoker.Loader, batches: int | None = None) -> None:
        """Load some batches, or an epoch, and hold the images against those that were loaded first."""
        for batch in itertools.islice(loader, batches):
            assert np.array_equal(batch.images, self.images[batch.indices]), "other images than in the parent"
            self.samples += len(batch)
            time.sleep(PAUSE_SECONDS)

    def _running(self) -> Iterator[int]:
        number = 0
        while not self._stop.is_set():
            yield (number := number + 1)

    def _read(self) -> None:
        for _ in self._running():
            self.check(self.loader)

    def _fill_memory(self) -> None:
        for number in self._running():
            self.memory = stoker.MemoryCache("1MB", "decoded" if number % 2 else "encoded")
            with stoker.Loader(self.train, 16, transform=TRANSFORM, threads=2, cache=self.memory) as loader:
                self.check(loader)

    def _fill_disk(self) -> None:
        for number in self._running():
            self.node = stoker.NodeCache(self.folder / f"node-{number}", "64MB")
            with stoker.Loader(self.train, 16, transform=TRANSFORM, threads=1, cache=self.node) as loader:
                self.check(loader)
            # No child is so slow that it still uses this one.
            shutil.rmtree(self.folder / f"node-{number - KEPT_CACHES}", ignore_errors=True)

    def _read_folder(self) -> None:
        for _ in self._running():
            with stoker.Loader(self.photos, 16, transform=TRANSFORM, threads=1, boxes=BoxOutput()) as loader:
                for batch in loader:
                    self.samples += len(batch)
                    time.sleep(PAUSE_SECONDS)

    def _count_objects(self) -> None:
        for _ in self._running():
            assert len(stoker.open(self.folder / "photos").object_counts) == IMAGES
            time.sleep(PAUSE_SECONDS)

    def _ask(self) -> None:
        for _ in self._running():
            for asked in (self.memory, self.node, self.loader):
                asked.stats()
            time.sleep(PAUSE_SECONDS / 4)

    def _read_bucket(self) -> None:
        assert self.remote is not None
        ahead = stoker.ReadAhead(connections=4)
        while not self._stop.is_set():
            with stoker.Loader(self.remote, 16, transform=TRANSFORM, threads=1, read_ahead=ahead) as loader:
                self.check(loader)


# What a child does.


def make_a_loader(load: Load) -> None:
    """Read batches with a new loader of the parent's dataset, in the same order as any other process."""
    with stoker.Loader(load.train, 16, shuffle=True, seed=5, transform=TRANSFORM, threads=2) as loader:
        load.check(loader, 3)


def read_the_folder(load: Load) -> None:
    """The same of the parent's folder of images, with boxes."""
    with stoker.Loader(load.photos, 16, transform=TRANSFORM, threads=2, boxes=BoxOutput()) as loader:
        assert sum(len(batch) for batch in itertools.islice(loader, 3)) == 48


def ask_the_caches(load: Load) -> None:
    """Ask for the statistics of the parent's caches, which begin anew."""
    for cache in (load.memory, load.node):
        assert (cache.stats().hits, cache.stats().misses) == (0, 0), cache


def use_the_caches(load: Load) -> None:
    """Give the parent's caches to new loaders."""
    for cache in (load.memory, load.node):
        with stoker.Loader(load.train, 16, transform=TRANSFORM, threads=2, cache=cache) as loader:
            load.check(loader, 2)
        assert 32 <= cache.stats().hits + cache.stats().misses <= 80, cache


def make_a_cache(load: Load) -> None:
    """Fill a new cache, and read from it."""
    cache = stoker.MemoryCache("1MB", "decoded")
    with stoker.Loader(load.train, 16, transform=TRANSFORM, threads=1, cache=cache) as loader:
        for _ in range(2):
            loader.set_epoch(0)
            load.check(loader, 2)
    assert cache.stats().hits >= 32, cache


def use_the_loader(load: Load) -> None:
    """Use the parent's loader: a clear error."""
    refused(ClosedError, lambda: next(iter(load.loader)))
    refused(ClosedError, load.loader.stats)
    load.loader.close()


def open_again(load: Load) -> None:
    """Open the dataset and the folder, and read a sample of each by its number."""
    dataset, photos = stoker.open(load.folder / "dataset"), stoker.open(load.folder / "photos")
    assert dataset[11].encoded == load.train[11].encoded
    assert photos[7].label == photos.labels[7]
    assert not photos.object_counts.any()


def read_the_bucket(load: Load) -> None:
    """Read the parent's dataset in the bucket: a clear error, as its client survives no fork."""
    if load.remote is not None:
        refused(StorageError, partial(load.remote.__getitem__, 3))


def refused(kind: type[StokerError], use: Callable[[], object]) -> None:
    """See that something is refused, and that the message says why."""
    try:
        use()
    except kind as error:
        if "fork" in str(error):
            return
        raise
    raise AssertionError(f"{use} is not refused in a child")


def do_nothing(_: Load) -> None:
    """Only end."""


ACTIONS: list[Callable[[Load], None]] = [
    make_a_loader, read_the_folder, ask_the_caches, use_the_caches, make_a_cache, use_the_loader, open_again,
    read_the_bucket, do_nothing,
]  # fmt: skip
_NAMES = [action.__name__ for action in ACTIONS]
ENDS = ("return", "sys.exit", "os._exit", "os._exit", "os._exit", "os._exit")  # the last is that of worker processes


@dataclass
class Outcomes:
    """What became of the children.

    Attributes:
        seconds: That those of each action took.
        failed: Children that ended with an error, by action; what they printed is on standard error.
        hung: The same of those that had to be killed.
        samples: What the parent loaded meanwhile.
        took: Seconds in all.
    """

    seconds: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in _NAMES})
    failed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_NAMES, 0))
    hung: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_NAMES, 0))
    samples: int = 0
    took: float = 0.0


@dataclass(frozen=True, slots=True)
class _Child:
    process: int
    action: str
    begun: float


def fork_all(load: Load, forks: int, deadline: float) -> Outcomes | None:
    """Fork again and again, `AT_ONCE` children at a time; None in a child, which then has to end."""
    outcomes, running, begun = Outcomes(), list[_Child](), time.monotonic()
    for number in range(forks):
        action, end = ACTIONS[number % len(ACTIONS)], ENDS[number // len(ACTIONS) % len(ENDS)]
        process = os.fork()
        if process == 0:
            _be_a_child(load, action, end)
            return None
        running.append(_Child(process, action.__name__, time.monotonic()))
        while len(running) == AT_ONCE:
            running = [child for child in running if not _ended(child, outcomes, deadline)]
            time.sleep(0.001)
    while running:
        running = [child for child in running if not _ended(child, outcomes, deadline)]
        time.sleep(0.001)
    outcomes.samples, outcomes.took = load.samples, time.monotonic() - begun
    return outcomes


def _be_a_child(load: Load, action: Callable[[Load], None], end: str) -> None:
    """Do it, and end, unless the end is to return."""
    try:
        action(load)
    except BaseException:  # noqa: BLE001 - the parent only sees how it ends
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    if end == "sys.exit":
        sys.exit(0)
    if end == "os._exit":
        os._exit(0)


def _ended(child: _Child, outcomes: Outcomes, deadline: float) -> bool:
    """Look after a child."""
    process, status = os.waitpid(child.process, os.WNOHANG)
    took = time.monotonic() - child.begun
    if process == 0 and took < deadline:
        return False
    if process == 0:
        outcomes.hung[child.action] += 1
        _show_stacks(child.process)
        os.waitpid(child.process, 0)
    elif status != 0:
        outcomes.failed[child.action] += 1
        print(f"{child.action}: ended with {os.waitstatus_to_exitcode(status)}", file=sys.stderr)
    outcomes.seconds[child.action].append(took)
    return True


def _show_stacks(process: int) -> None:
    """Print what the threads of a process wait for, and end it."""
    print(f"process {process} hangs:", file=sys.stderr, flush=True)
    if shutil.which("gdb"):
        command = ["gdb", "-p", str(process), "-batch", "-ex", "thread apply all backtrace 24"]
        subprocess.run(command, stdout=sys.stderr, stderr=subprocess.DEVNULL, check=False, timeout=120)
    os.kill(process, signal.SIGABRT)  # upon which faulthandler prints the stacks of Python
    time.sleep(1)
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def run_forked_program(folder: str, bucket: str, forks: int, deadline: float) -> None:
    """Be the program that is forked; its last line is what was found, as JSON."""
    files = OPEN_FILES + (CONNECTIONS if bucket else 0)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    faulthandler.enable()
    with Load(Path(folder), bucket) as load:
        outcomes = fork_all(load, forks, deadline)
    if outcomes is not None:
        print(json.dumps(asdict(outcomes)))


def trial(forks: int, folder: Path, bucket: str = "", deadline: float = DEADLINE_SECONDS) -> tuple[Outcomes, str]:
    """Run the program that is forked.

    Returns:
        What became of its children, and what all of them printed on standard error.

    Raises:
        RuntimeError: The program itself failed.
    """
    arguments = ", ".join(map(repr, (str(folder), bucket, forks, deadline)))
    program = f"from benchmarks.forks import run_forked_program\nrun_forked_program({arguments})\n"
    # From Python 3.12 on, any fork beside threads is warned of.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program]
    with tempfile.TemporaryFile("w+") as errors:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, check=False)
        errors.seek(0)
        stderr = errors.read()
    if done.returncode != 0:
        raise RuntimeError(f"the program that is forked ended with {done.returncode}:\n{stderr}")
    return Outcomes(**json.loads(done.stdout.splitlines()[-1])), stderr


def report(outcomes: Outcomes) -> str:
    """Return the table."""
    lines = [f"{'a child':18} {'forks':>6} {'hung':>5} {'failed':>7} {'median s':>9} {'longest s':>10}"]
    for action, seconds in outcomes.seconds.items():
        times = f"{median(seconds):9.3f} {max(seconds):10.3f}" if seconds else f"{'':20}"
        lines.append(f"{action:18} {len(seconds):6} {outcomes.hung[action]:5} {outcomes.failed[action]:7} {times}")
    forks = sum(map(len, outcomes.seconds.values()))
    hung, failed = sum(outcomes.hung.values()), sum(outcomes.failed.values())
    lines.append(f"{'all':18} {forks:6} {hung:5} {failed:7}")
    lines.append(f"{outcomes.took:.0f} s; the parent loaded {outcomes.samples:,} images meanwhile")
    return "\n".join(lines)


@contextlib.contextmanager
def bucket_of(folder: Path) -> Iterator[str]:
    """Copy the dataset into a bucket of a server that runs meanwhile."""
    with s3.running() as server:
        os.environ.update(server.environment())
        url = f"s3://{server.make_bucket()}/dataset"
        for path in (folder / "dataset").iterdir():
            (location(url) / path.name).write_atomically(path.read_bytes())
        yield url


def main(argv: Sequence[str] | None = None) -> int:
    """Run the trial; 1 if a child hung, failed or printed something."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forks", type=int, default=10_000, metavar="N", help="how many children (%(default)s)")
    parser.add_argument("--local", action="store_true", help="read from no bucket")
    parser.add_argument("--deadline", type=float, default=DEADLINE_SECONDS, metavar="S", help="seconds of a child")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found there")
    options = parser.parse_args(argv)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        write_data(folder)
        bucket = "" if options.local else stack.enter_context(bucket_of(folder))
        outcomes, stderr = trial(options.forks, folder, bucket, options.deadline)
    print(report(outcomes))
    if stderr:
        print(f"\nprinted by the program and its children:\n{stderr}")
    if options.json:
        options.json.write_text(json.dumps(asdict(outcomes)))
    return 1 if stderr or any(outcomes.hung.values()) or any(outcomes.failed.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())

"""How much memory a build on Spark takes, and whether executors need more than what is sent to them.

::

    python benchmarks/spark_scale.py memory --items 1000000 --stop-after 20
    python benchmarks/spark_scale.py packed environment.tar.gz data/imagenet

Both run a real standalone cluster on this machine: a master, and workers with one core each. ``memory`` lists a tree
of so many files, which are hard links to a few tiny images, plans it, sends out all slices, and stops after some shards
(0: builds them all). It prints the highest resident memory of each kind of process, as the kernel has noted it
(``VmHWM``). ``packed`` builds with executors that have nothing but an environment that venv-pack has made, sent along
as an archive. How fast builds are, `benchmarks.spark_speed` measures.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import stoker.spark
from stoker.config import format_size
from stoker.spark import started_session
from tests.servers import spark_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_CLASSES = 1000
_LINKS = 50_000  # file systems allow 65,000 of one file
_LOOK_SECONDS = 0.1
_KINDS = {
    "executor JVM": "CoarseGrainedExecutorBackend",
    "executor Python": "pyspark.daemon",
    "driver JVM": "org.apache.spark.deploy.SparkSubmit",
}


class Enough(Exception):  # noqa: N818 - no error: as many shards as were asked for
    """Ends a build early."""


class PeakMemory:
    """Looks at the kernel's high-water marks of our processes, and of those of a cluster, while they run."""

    def __init__(self) -> None:
        self.peaks: dict[str, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        self._note("driver Python", Path("/proc/self"))
        parents: dict[int, int] = {}
        kinds: dict[int, str] = {}
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended
                parents[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
                command = (process / "cmdline").read_bytes().decode("utf-8", "replace")
                kinds |= {int(process.name): kind for kind, word in _KINDS.items() if word in command}
        for pid, kind in kinds.items():
            ancestor = pid
            while ancestor in parents and ancestor != os.getpid():
                ancestor = parents[ancestor]
            if ancestor == os.getpid():
                with suppress(OSError):
                    self._note(kind, Path(f"/proc/{pid}"))

    def _note(self, kind: str, process: Path) -> None:
        match = re.search(r"VmHWM:\s+(\d+) kB", (process / "status").read_text())
        if match is not None:
            self.peaks[kind] = max(self.peaks.get(kind, 0), int(match[1]) * 1024)


@contextmanager
def cluster_session(workers: int, cores: int, **more: str) -> Iterator[SparkSession]:
    """Run a cluster of so many workers, and an application with so many cores on it, and with more settings."""
    with spark_cluster.running(spark_cluster.Size(workers=workers, cores=1, memory_mb=1500)) as cluster:
        os.environ.update(cluster.environment())
        settings = {**cluster.settings(), "spark.cores.max": str(cores), **more}
        with started_session(settings.pop("spark.master"), settings) as session:
            yield session


def write_tree(root: Path, items: int) -> None:
    """Make class folders whose files are links to a few tiny images."""
    rng = np.random.default_rng(1)
    originals = root.parent / "originals"
    originals.mkdir()
    for number in range(items // _LINKS + 1):
        file = io.BytesIO()
        Image.fromarray(rng.integers(0, 256, (4, 4, 3), np.uint8)).resize((32, 32)).save(file, "JPEG")
        (originals / str(number)).write_bytes(file.getvalue())
    for label in range(_CLASSES):
        folder = root / f"n{label:08}"
        folder.mkdir(parents=True)
        for number in range(label, items, _CLASSES):
            os.link(originals / str(number // _LINKS), folder / f"n{label:08}_{number}.JPEG")


def measure_memory(args: argparse.Namespace) -> dict[str, Any]:
    """List, plan and build a generated tree, and return the peaks."""
    with tempfile.TemporaryDirectory(dir=args.folder) as scratch:
        source, destination = Path(scratch) / "tree", Path(scratch) / "dataset"
        write_tree(source, args.items)
        shards: set[int] = set()

        def progress(*, done: int, total: int, size_bytes: int, rejects: int) -> None:
            del total, size_bytes, rejects
            shards.add(done)
            if args.stop_after and len(shards) > args.stop_after:
                raise Enough

        began = time.monotonic()
        with cluster_session(2, 2) as session, PeakMemory() as memory:
            started = time.monotonic()
            with suppress(Enough):
                engine = stoker.spark.engine(session)
                stoker.build(source, destination, shards=args.shards, allow_huge=True, progress=progress, engine=engine)
            seconds = time.monotonic() - started
        return {
            "items": args.items,
            "shards": args.shards,
            "shards built": len(shards) - 1,
            "seconds": round(seconds, 1),
            "seconds with cluster": round(time.monotonic() - began, 1),
            "peaks": {kind: format_size(peak) for kind, peak in sorted(memory.peaks.items())},
        }


def measure_packed(args: argparse.Namespace) -> dict[str, Any]:
    """Build with executors that were sent their whole environment, and return seconds and where it lay."""
    source = Path(args.source).resolve()
    archive = {
        "spark.archives": f"{Path(args.environment).resolve()}#environment",
        "spark.pyspark.python": "./environment/bin/python",
    }
    with tempfile.TemporaryDirectory(dir=args.folder) as scratch:
        expected = stoker.build(source, Path(scratch) / "local", shards=args.shards).manifest.dataset_id
        began = time.monotonic()
        with cluster_session(2, 2, **archive) as session:
            origins = session.sparkContext.parallelize([0], 1).map(lambda _: str(find_spec("stoker"))).collect()
            engine = stoker.spark.engine(session)
            report = stoker.build(source, Path(scratch) / "spark", shards=args.shards, engine=engine)
        assert report.manifest.dataset_id == expected
        seconds = round(time.monotonic() - began, 1)
        return {"dataset_id": expected, "stoker of the executors": origins, "seconds with cluster": seconds}


def main() -> None:
    """Measure what the command line asks for, and print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", help="where trees and datasets are made")
    subparsers = parser.add_subparsers(required=True)
    memory = subparsers.add_parser("memory")
    memory.add_argument("--items", type=int, default=1_000_000)
    memory.add_argument("--shards", type=int, default=400)
    memory.add_argument("--stop-after", type=int, default=20, metavar="SHARDS")
    memory.set_defaults(measure=measure_memory)
    packed = subparsers.add_parser("packed")
    packed.add_argument("environment")
    packed.add_argument("source")
    packed.add_argument("--shards", type=int, default=4)
    packed.set_defaults(measure=measure_packed)
    args = parser.parse_args()
    print(json.dumps(args.measure(args), indent=1))


if __name__ == "__main__":
    main()

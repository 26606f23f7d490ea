"""Plans a made-up source of very many images, and prints its time and its memory: python benchmarks/many_items.py.

What is measured is what a build does before its first shard: the images are collected in an order that is far from
that of the table, sorted, hashed, divided into shards, saved as parts of a build share them, and read again; the items
of one shard are taken from the result. Nothing is opened, and there are no images.

Run it as ``--images 100000000 --limit 1GiB`` to show that it needs no more: the process then joins a control group with
that limit, which counts the pages of its files too, and which only root can make.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.builder import BuildOptions
from stoker.builder.plan import RecordSize, make_plan, plan_settings
from stoker.config import format_size, parse_size
from stoker.sources import Source, read_listing, write_listing
from stoker.sources.items import Group, ItemCollector
from stoker.sources.reader import FileReader
from stoker.storage import location

if TYPE_CHECKING:
    from collections.abc import Iterator

STATUS = Path("/proc/self/status")
GROUPS = Path("/sys/fs/cgroup/memory")


def main() -> None:
    """Print a line for each step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--limit", help="memory that the process may use, such as 1GiB")
    args = parser.parse_args()
    if args.limit:
        join_group(parse_size(args.limit))
    names = [b"n%08d" % number for number in range(args.classes)]
    with step("collected", args.images):
        collector = collect(args.images, names)
    with step("sorted", args.images):
        table, splits = collector.finish({name: label for label, name in enumerate(names)})
    classes = tuple(names)
    tree = Source("/photos", classes, (b"",) * len(classes), table, splits, FileReader(b"/photos", "disk"))
    settings = BuildOptions().settings("/photos")
    with step("planned", args.images):
        plan = make_plan(tree, settings, RecordSize(1.0))
        identity = plan_settings(plan, settings)
    with tempfile.TemporaryDirectory() as folder:
        file = location(folder) / "listing"
        with step("saved", args.images):
            write_listing(file, tree, {})
        print(f"{format_size(file.size())} on the disk")
        with step("read again", args.images):
            listing = read_listing(file)
    assert listing is not None
    assert listing[1] is not None
    again = make_plan(listing[1], settings, RecordSize(1.0))
    assert plan_settings(again, settings) == identity
    with step("one shard", args.images):
        job = next(again.jobs({again.shard_names[-1]}))
    print(f"{len(again.shard_names):,} shards; the last one has {len(list(job.items)):,} images")


def collect(images: int, names: list[bytes]) -> ItemCollector:
    """Return a collector with images of all classes in turn."""
    collector = ItemCollector()
    groups = [collector.add_group(Group("train", name, len(name) + 7)) for name in names]
    for number in range(images):
        label = number * 7919 % len(names)
        path = b"train/%b/%b_%d_%d.JPEG" % (names[label], names[label], number * 31 % 99991, number)
        collector.add(groups[label], path, 100_000 + number % 1000)
    return collector


@contextmanager
def step(name: str, images: int) -> Iterator[None]:
    """Print what a step took."""
    started, cpu = time.monotonic(), time.process_time()
    yield
    status = STATUS.read_text()
    own, highest = (int(re.findall(rf"{key}:\s+([0-9]+) kB", status)[0]) * 1024 for key in ("RssAnon", "VmHWM"))
    seconds, used = time.monotonic() - started, time.process_time() - cpu
    print(
        f"{name:12} {images:,} images: {seconds:7.1f} s ({used:.1f} s of CPU); "
        f"memory now {format_size(own)}, highest with pages of files {format_size(highest)}",
        flush=True,
    )


def join_group(limit: int) -> None:
    """Let the system give this process no more memory than that, the pages of its files included."""
    group = GROUPS / f"stoker-many-items-{os.getpid()}"
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text(str(limit))
    (group / "cgroup.procs").write_text(str(os.getpid()))


if __name__ == "__main__":
    main()

"""``stoker bench``: images per second of the whole ladder of ways to read images, in turns."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from stoker.cli.bench_table import document_of, print_report
from stoker.cli.bench_watch import WatchedBench
from stoker.cli.exit_codes import EXIT_FAILED
from stoker.cli.output import print_json
from stoker.errors import ConfigError
from stoker.measure import BenchSpec, run_bench
from stoker.records.files import write_atomically
from stoker.storage import RemotePath, location

if TYPE_CHECKING:
    import argparse

    from stoker.measure import BenchReport

_DEFAULT = BenchSpec(dataset="")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Add the command."""
    text = "images per second of every way to read your images: the ladder, Stoker, the codec alone, and rivals"
    parser = subparsers.add_parser("bench", help=text, description=text)
    add = parser.add_argument
    add("dataset", help="folder of images, file list, dataset, TFRecords, or the URL of one")
    add("--split", help="split to read (default: the only one, or train)")
    text = "crop and resize (default: train); objects: an image of each annotated object"
    add("--view", choices=("train", "eval", "objects"), default="train", help=text)
    add("--batch-size", type=int, default=_DEFAULT.batch_size, help="images per batch (default: %(default)s)")
    add("--threads", type=int, help="threads or workers of each reader (default: one per CPU)")
    add("--seconds", type=float, default=_DEFAULT.seconds, help="time per reader and round (default: %(default)s)")
    add("--rounds", type=int, default=_DEFAULT.rounds, help="turns each reader takes (default: %(default)s)")
    add("--images", type=int, metavar="N", help="take at most N images (default: 1000, fewer if they are large)")
    text = "measure these alone: a,b,c; see docs/bench.md"
    add("--only", type=_keys, default=(), metavar="NAMES", help=text)
    text = "other readers too, on the same images in their own form: names, or all that are installed"
    add("--against", type=_keys, default=(), metavar="NAMES", help=text)
    text = "drop the files from the page cache before each measurement: figures of the disk, not of memory"
    add("--cold", action="store_true", help=text)
    add("--keep", metavar="DIR", help="prepare in this folder and keep it for the next time (default: temporary)")
    add("--html", metavar="FILE", help="write a page with the figures")
    add("--png", metavar="FILE", help="write a picture of the figures")
    add("--json", action="store_true", help="print one JSON document")
    return parser


def run(args: argparse.Namespace) -> int:
    """Measure, print, and return 0; 1 if a reader failed."""
    spec = BenchSpec(
        dataset=args.dataset,
        split=args.split,
        view=args.view,
        batch_size=args.batch_size,
        threads=args.threads,
        seconds=args.seconds,
        rounds=args.rounds,
        cold=args.cold,
        images=args.images,
        only=args.only,
        against=args.against,
        keep=args.keep,
    )
    _require_pictures(args)
    watcher = WatchedBench()
    try:
        report = run_bench(spec, watcher)
    finally:
        watcher.end()
    if args.json:
        print_json(document_of(report))
    else:
        print_report(report)
    _write_pictures(report, args)
    return EXIT_FAILED if any(left.failed for left in report.left_out) else 0


def _keys(text: str) -> tuple[str, ...]:
    return tuple(key.strip() for key in text.split(",") if key.strip())


def _require_pictures(args: argparse.Namespace) -> None:
    """Find out before minutes of measuring whether the pictures can be drawn and have a place.

    Raises:
        ConfigError: The extra is not installed, or there is no such folder.
    """
    for option, path in (("--html", args.html), ("--png", args.png)):
        if not path:
            continue
        importlib.import_module("stoker.report")  # with what draws, which figures alone do not need
        place = location(path)
        if isinstance(place, RemotePath):
            continue
        if not place.parent.is_dir():
            raise ConfigError(f"{option} is {path!r}, and there is no folder {str(place.parent)!r}; make it first")
        if place.is_dir():
            raise ConfigError(f"{option} is {path!r}, which is a folder; name a file")


def _write_pictures(report: BenchReport, args: argparse.Namespace) -> None:
    if not args.html and not args.png:
        return
    pictures = importlib.import_module("stoker.report")
    if args.html:
        write_atomically(location(args.html), pictures.bench_page(report).encode())
    if args.png:
        pictures.bench_picture(report, args.png)

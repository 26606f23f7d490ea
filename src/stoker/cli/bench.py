"""``stoker bench``: images per second of every way to read images, in turns; a table, JSON, or a page."""

from __future__ import annotations

import dataclasses
import importlib
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

from stoker.cli.output import EXIT_FAILED, Printer, bar, print_json
from stoker.cli.progress import shown_progress
from stoker.config import format_seconds, format_size
from stoker.errors import ConfigError
from stoker.format import write_atomically
from stoker.inspect import BenchProgress, BenchSpec, run_bench
from stoker.sources import SOURCE_KINDS
from stoker.storage import location

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from stoker.inspect import BenchReport, BenchRow
    from stoker.types import Progress

_DEFAULT = BenchSpec(dataset="")
_BAR_WIDTH = 24
_SHOWN = 5
_LINE_SECONDS = 2.0
_FEW_BYTES = 4 * 2**20
_HEADINGS = {"limit": "the limit", "ladder": "the ladder", "stoker": "Stoker"}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Add the command."""
    text = "images per second of every way to read your images: the ladder, Stoker, and the codec alone"
    parser = subparsers.add_parser("bench", help=text, description=text)
    add = parser.add_argument
    add("dataset", help=f"dataset, TFRecords, {SOURCE_KINDS}, or the URL of one")
    add("--split", help="split to read (default: the only one, or train)")
    text = "crop and resize (default: train); objects: an image of each annotated object"
    add("--transform", choices=("train", "eval", "objects"), default="train", help=text)
    add("--batch-size", type=int, default=_DEFAULT.batch_size, help="images per batch (default: %(default)s)")
    add("--threads", type=int, help="threads of each case (default: one per CPU)")
    add("--seconds", type=float, default=_DEFAULT.seconds, help="time per case and round (default: %(default)s)")
    add("--rounds", type=int, default=_DEFAULT.rounds, help="turns of each case (default: %(default)s)")
    add("--images", type=int, metavar="N", help="take at most N images (default: 1000, fewer if they are large)")
    text = "measure these cases alone: a,b,c; see docs/bench.md"
    add("--only", type=_keys, default=(), metavar="NAMES", help=text)
    text = "drop the files from the page cache before each measurement: figures of the disk, not of memory"
    add("--cold", action="store_true", help=text)
    add("--html", metavar="FILE", help="write a page with the figures")
    add("--json", action="store_true", help="print one JSON document")
    return parser


def run(args: argparse.Namespace) -> int:
    """Measure, print, and return 0; 1 if a case failed."""
    names = [field.name for field in dataclasses.fields(BenchSpec)]
    spec = BenchSpec(**{name: getattr(args, name) for name in names})
    if args.html:
        _require_place(args.html)
    shown = _ShownProgress()
    try:
        report = run_bench(spec, shown)
    finally:
        shown.end()
    if args.json:
        print_json(document_of(report))
    else:
        _print_report(report)
    if args.html:
        from stoker.inspect import page  # noqa: PLC0415 - an extra, needed only for pages

        write_atomically(location(args.html), page.bench_page(report).encode())
    return EXIT_FAILED if any(left.failed for left in report.left_out) else 0


def document_of(report: BenchReport) -> dict[str, Any]:
    """Return everything as JSON can hold it; ``docs/bench.md`` describes each field."""
    document = dataclasses.asdict(report)
    document["page_cache"] = "cold" if report.task.cold else "warm"
    for row, made in zip(document["rows"], report.rows, strict=True):
        row["median_images_per_second"] = made.median
        row["median_files_per_second"] = made.median * report.files_per_sample
    return document


def _keys(text: str) -> tuple[str, ...]:
    return tuple(key.strip() for key in text.split(",") if key.strip())


def _require_place(path: str) -> None:
    """Check before minutes of measuring that the page can be made and has a place.

    Raises:
        ConfigError: The extra is not installed, or there is no such folder.
    """
    importlib.import_module("stoker.inspect.page")  # an extra, needed only for pages
    place = location(path)
    if place.is_local and not place.parent.is_dir():
        raise ConfigError(f"--html is {path!r}, and there is no folder {str(place.parent)!r}; make it first")
    if place.is_local and place.is_dir():
        raise ConfigError(f"--html is {path!r}, which is a folder; name a file")


class _ShownProgress(BenchProgress):
    """On a terminal one line is written over the other; elsewhere there is one every two seconds."""

    def __init__(self) -> None:
        self._shown = 0.0
        self._is_terminal = sys.stderr.isatty()

    def phase(self, verb: str) -> AbstractContextManager[Progress]:
        return shown_progress(verb)

    def line(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def step(self, text: str) -> None:
        if self._is_terminal:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
        elif time.monotonic() - self._shown > _LINE_SECONDS:
            self._shown = time.monotonic()
            self.line(text)

    def end(self) -> None:
        """Remove the last step."""
        if self._is_terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _print_report(report: BenchReport) -> None:
    printer = Printer()
    for line in _head(report):
        printer.line(line)
    columns = ["case", f">{'cold ' * report.task.cold}{report.counted}/s", ">lowest", ">highest"]
    if report.counted == "crops":
        columns.append(">files/s")
    printer.table([*columns, ">per CPU second", ">of the limit", ""], _rows(report))
    reasons: dict[str, list[str]] = {}
    for left in report.left_out:
        reasons.setdefault(left.reason, []).append(left.key)
    for reason, keys in reasons.items():
        printer.line(f"left out: {', '.join(keys)}: {reason}")
    printer.some([f"unreadable: {reason}" for reason in report.prepared.unreadable], _SHOWN, "--json lists all")


def _head(report: BenchReport) -> Iterator[str]:
    task, machine, prepared = report.task, report.machine, report.prepared
    crops = f", {prepared.samples} crops of them," if report.counted == "crops" else ""
    yield (
        f"{task.transform} transform of {prepared.images} of {report.images} images{crops} ({task.split}), "
        f"batch {task.batch_size}, {task.threads} threads, page cache {report.page_cache}, "
        f"{report.rounds} rounds of {report.seconds:g} s in turns"
    )
    yield (
        f"{machine.processor}, {machine.cpus} CPUs, {format_size(machine.memory_bytes)}, {machine.system}, "
        f"Python {machine.python}"
    )
    yield (
        f"prepared in {format_seconds(prepared.seconds)}: {format_size(prepared.encoded_bytes)} of JPEG, "
        f"{format_size(prepared.decoded_bytes)} decoded, {format_size(prepared.written_bytes)} written"
    )
    if prepared.converted:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(prepared.converted.items()))
        yield f"made JPEG files for all cases but stoker-own: {kinds}"
    if prepared.unreadable:
        yield f"{len(prepared.unreadable)} images cannot be read, and are left out in all cases"
    if prepared.encoded_bytes < _FEW_BYTES:
        yield "few images: they may stay in the processor's caches, which makes every figure better than it will be"


def _rows(report: BenchReport) -> Iterator[tuple[str, ...]]:
    best = max((row.median for row in report.rows), default=1.0)
    for group, heading in _HEADINGS.items():
        rows = [row for row in report.rows if row.group == group]
        if rows:
            yield (f"-- {heading}",)
        for row in rows:
            yield _cells(report, row, best)


def _cells(report: BenchReport, row: BenchRow, best: float) -> tuple[str, ...]:
    rates = row.images_per_second
    files = (f"{row.median * report.files_per_sample:.0f}",) if report.counted == "crops" else ()
    return (
        row.name,
        f"{row.median:.0f}",
        f"{min(rates):.0f}",
        f"{max(rates):.0f}",
        *files,
        f"{statistics.median(row.images_per_cpu_second):.0f}",
        "-" if row.of_limit is None else f"{row.of_limit:.2f}",
        bar(row.median / best, _BAR_WIDTH),
    )

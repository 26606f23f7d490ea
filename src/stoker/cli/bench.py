"""``stoker bench``: measure images per second of every way to read images, for a table, JSON, or a page."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from stoker.cli import options, output
from stoker.config import format_count, format_size, refuse_ineffective
from stoker.inspect import BenchSpec, measure_configured, run_bench
from stoker.recipe import by_decoder
from stoker.sources import SOURCE_KINDS, is_config
from stoker.storage import location

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from stoker.inspect import BenchReport

_BAR_WIDTH = 24
_SHOWN = 5
_FEW_BYTES = 4 * 2**20
_HEADINGS = {"limit": "the limit", "ladder": "the ladder", "stoker": "Stoker"}

DESCRIPTION = (
    "Measure images per second of every way to read your images: common loaders, Stoker, and the codec alone; of"
    " an ilsvrc.json in one line, with its own batch, size, readers and prefetch."
)
EXAMPLES = (
    "stoker bench dataset",
    "stoker bench photos --transform eval --threads 8 --html bench.html",
    "stoker bench ilsvrc.json --threads 8",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    spec = BenchSpec("")
    parser.add_argument("dataset", help=f"dataset, TFRecords, {SOURCE_KINDS}; or its URL")
    add = parser.add_argument_group("what is measured").add_argument
    add("--split", metavar="NAME", help="split to read (default: the only one, or train)")
    text = "crop and resize: train (default) or eval"
    add("--transform", choices=("train", "eval"), metavar="NAME", help=text)
    text = f"images per batch (default {spec.batch_size}; of an ilsvrc.json what it says)"
    add("--batch-size", type=int, metavar="N", help=text)
    text = "threads of each case (default: one per CPU; of an ilsvrc.json its readers)"
    add("--threads", type=int, metavar="N", help=text)
    add("--images", type=int, metavar="N", help="take at most N images (default: 1000, fewer if they are large)")
    add("--only", type=_keys, default=(), metavar="NAMES", help="measure these cases alone: a,b,c")
    text = "drop the files from the page cache before each measurement: figures of the disk, not of memory"
    add("--cold", action="store_true", help=text)
    add = parser.add_argument_group("how it runs").add_argument
    text = "time per case and round (default %(default)s)"
    add("--seconds", type=float, default=spec.seconds, metavar="S", help=text)
    add("--rounds", type=int, default=spec.rounds, metavar="N", help="turns of each case (default %(default)s)")
    add("--html", metavar="FILE", help="write a page with the figures, too (needs stoker[report])")
    options.add_opening(parser)


def run(args: argparse.Namespace) -> int:
    """Measure, print, and return 0; 1 if a case failed."""
    if is_config(location(args.dataset)):
        return _run_configured(args)
    named = {name: getattr(args, name) for name in BenchSpec.__dataclass_fields__ if name not in ("keys", "source")}
    given = {name: value for name, value in named.items() if value is not None}
    spec = BenchSpec(**given, keys=options.record_keys(args), source=options.source_options(args))
    page = None if args.html is None else output.page_module(args.html)
    if args.json:
        report = run_bench(spec, output.shown_progress)
        output.document(dataclasses.asdict(report))
    else:
        report = run_bench(
            spec, output.shown_progress, lambda key, speed: output.detail(f"{key}: {speed:,.0f} images/s")
        )
        print_report(report)
    if page is not None:
        location(args.html).write_atomically(page.bench_page(report).encode())
    return output.EXIT_FAILED if report.failed else 0


def _run_configured(args: argparse.Namespace) -> int:
    others = {name: getattr(args, name) or None for name in ("transform", "images", "only", "cold", "html")}
    where = f"on {args.dataset}, which is measured alone with its own settings"
    refuse_ineffective(others, where, "omit it, or give one of its lists instead")
    chosen = {name: getattr(args, name) for name in ("batch_size", "threads", "seconds", "rounds")}
    measured = measure_configured(args.dataset, args.split, **chosen)
    if args.json:
        output.document(dataclasses.asdict(measured))
        return 0
    speed = f"{measured.images_per_second:,.0f} images/s ({measured.lowest:,.0f} to {measured.highest:,.0f})"
    prefetch = "" if measured.prefetch is None else f", prefetch {measured.prefetch}"
    size = " x ".join(map(str, measured.shape))
    threads = format_count(measured.threads, "thread")
    output.line(f"{speed}: {measured.split}, batches of {measured.batch_size} x {size}, {threads}{prefetch}")
    return 0


def _keys(text: str) -> tuple[str, ...]:
    return tuple(key.strip() for key in text.split(",") if key.strip())


def print_report(report: BenchReport) -> None:
    """Print the figures as a table."""
    spec, machine = report.spec, report.machine
    images, cpus = format_count(report.images, "image"), format_count(machine.cpus, "CPU")
    output.line(
        f"{spec.transform} transform of {report.images_read:,} of {images} ({spec.split}), "
        f"batch {spec.batch_size}, {format_count(spec.threads, 'thread')}, page cache {report.page_cache}, "
        f"{format_count(spec.rounds, 'round')} of {spec.seconds:g} s in turns"
    )
    output.line(
        f"{machine.processor}, {cpus}, {format_size(machine.memory_bytes)}, {machine.system}, "
        f"Python {machine.python}, {machine.kernels} kernels"
    )
    output.line(f"formats: {output.counted(report.own_formats)}")
    if report.formats != report.own_formats:
        output.line(f"all cases but stoker-own read them as: {output.counted(report.formats)}")
    others = by_decoder(report.own_formats)[1]
    others.pop("raw", None)
    if others:
        output.line(
            f"Pillow decodes in stoker-own, under the GIL: {output.counted(others)}; 'stoker build' converts them once"
        )
    if report.encoded_bytes < _FEW_BYTES:
        output.line("few images: they may stay in the processor's caches, which makes every figure too good")
    speed = f">{'cold ' * spec.cold}images/s"
    output.table(["case", speed, ">lowest", ">highest", ">per CPU second", ">of the limit", ""], _rows(report))
    for heading, reasons in (("failed", report.failed), ("left out", report.left_out)):
        for reason in dict.fromkeys(reasons.values()):
            keys = [key for key, why in reasons.items() if why == reason]
            output.line(f"{heading}: {', '.join(keys)}: {reason}")
    output.some([f"unreadable: {reason}" for reason in report.unreadable], _SHOWN, "--json lists all")


def _rows(report: BenchReport) -> Iterator[tuple[str, ...]]:
    best = max((row.median for row in report.rows), default=1.0)
    heading = ""
    for row in report.rows:
        if heading != _HEADINGS[row.group]:
            heading = _HEADINGS[row.group]
            yield (f"-- {heading}",)
        yield (
            row.name,
            f"{row.median:.0f}",
            f"{min(row.images_per_second):.0f}",
            f"{max(row.images_per_second):.0f}",
            f"{row.median_per_cpu:.0f}",
            "-" if row.of_limit is None else f"{row.of_limit:.2f}",
            output.bar(row.median / best, _BAR_WIDTH),
        )

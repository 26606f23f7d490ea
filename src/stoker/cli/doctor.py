"""``stoker doctor``: find what slows down the reading of a dataset: one verdict, one remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.cli import options, output
from stoker.config import format_count, format_size
from stoker.inspect import DatasetReport, DatasetSpec, examine
from stoker.progress import ProgressDisplay
from stoker.recipe import by_decoder, missing_libraries

if TYPE_CHECKING:
    import argparse

_SHOWN = 5

DESCRIPTION = (
    "Find what slows the reading of a dataset down: each stage alone and in the pipeline; one verdict, one remedy."
)
EXAMPLES = ("stoker doctor dataset", "stoker doctor dataset --transform eval --threads 8 --cold")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    spec = DatasetSpec("")
    text = "dataset, directory, pattern or file of TFRecords, or images; or its URL"
    parser.add_argument("dataset", help=text)
    add = parser.add_argument_group("what is measured").add_argument
    add("--split", metavar="NAME", help="split to read (default: the only one, or train)")
    text = "crop and resize: train (default) or eval"
    add("--transform", choices=("train", "eval"), metavar="NAME", default=spec.transform, help=text)
    add("--batch-size", type=int, default=spec.batch_size, metavar="N", help="images per batch (default %(default)s)")
    add(
        "--threads",
        type=int,
        metavar="N",
        help="decoding threads (default: one per CPU; of several ranks on a node, its share)",
    )
    text = "time for the pipeline; the stages alone and what is tried take some more (default %(default)s)"
    add("--seconds", type=float, default=spec.seconds, metavar="S", help=text)
    text = "drop the files from the page cache first: what a first epoch meets; tries no remedy"
    add("--cold", action="store_true", help=text)
    options.add_opening(parser)


def run(args: argparse.Namespace) -> int:
    """Measure, print, and return 0."""
    given = {name: getattr(args, name) for name in DatasetSpec.__dataclass_fields__ if name not in ("keys", "source")}
    spec = DatasetSpec(**given, keys=options.record_keys(args), source=options.source_options(args))
    with ProgressDisplay(is_shown=not output.is_quiet()) as display:

        def show(number: int, parts: int, name: str) -> None:
            display.show("measuring", number, parts, f"part {number + 1} of {parts}, {name}", lambda _: [])

        report = examine(spec, show)
    if args.json:
        output.document(report.document())
    else:
        _print(report)
    return 0


def _print(report: DatasetReport) -> None:
    e = report.diagnosis.evidence
    files = e.files
    size = f", {format_size(files.size_bytes)}" if files.size_bytes is not None else ""
    memory = f", {files.cached_before:.0%} of it in memory before" if files.cached_before is not None else ""
    output.line(f"{files.name}: {format_count(report.images, 'image')}{size}{memory}")
    output.line(
        f"{report.spec.transform} transform, batches of {report.batch_size}, "
        f"{format_count(report.threads, 'thread')} on {e.setup.cpus_text}"
    )
    _print_formats(report)
    if report.unreadable:
        count = format_count(len(report.unreadable), "image")
        output.line(f"could not be loaded: {count}; others took their place")
        output.some([f"unreadable: {reason}" for reason in report.unreadable], _SHOWN, "--json lists all")
    rows = [
        (each.name, _speed(each.alone), _spread(each.spread), "" if each.share is None else f"{each.share:.0%}")
        for each in report.stages
    ]
    output.table(["stage", ">images/s", ">lowest to highest", ">of the threads' time"], rows)
    if report.trials:
        tried = [(t.name, _speed(t.images_per_second), _spread(t.spread), f"{t.speedup:.2f}x") for t in report.trials]
        output.table(["tried", ">images/s", ">lowest to highest", ">speed"], tried)
    output.line(f"{report.diagnosis.verdict}: {report.diagnosis.sentence}")
    output.line(f"remedy: {report.remedy}")


def _print_formats(report: DatasetReport) -> None:
    for text in missing_libraries():
        output.line(f"warning: {text}")
    if not report.formats:
        return
    native, others = by_decoder(report.formats)
    output.line(f"formats of {format_count(sum(report.formats.values()), 'image')}: {output.counted(report.formats)}")
    if report.turned:
        output.line(f'EXIF orientation, not applied: {report.turned:,} of them; stoker.open(..., exif="apply") does')
    if native and others:
        output.line(f"decoded natively: {output.counted(native)}; by Pillow: {output.counted(others)}")
    elif others:
        output.line("all of them are decoded by Pillow")
    if (pillow := report.pillow) is not None:
        speeds = f"{pillow.alone:,.0f} a second on 1 thread"
        if report.threads > 1:
            speeds += f", {pillow.together:,.0f} on {report.threads} ({pillow.together / pillow.alone:.1f}x)"
        cost = f"{1000 * pillow.cpu_seconds:.1f} ms of CPU an image"
        output.line(f"Pillow, {pillow.share:.0%} of the images: {cost}; {speeds}: threads take turns at the GIL")


def _speed(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:,.0f}"


def _spread(rates: tuple[float, float] | None) -> str:
    return "" if rates is None else f"{rates[0]:,.0f} to {rates[1]:,.0f}"

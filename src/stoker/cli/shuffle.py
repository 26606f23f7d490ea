"""``stoker shuffle``: how well each kind of order mixes a dataset, and how much of it a reader has in hand."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from stoker.cli.output import Printer, print_json
from stoker.config import format_size
from stoker.inspection.shuffle import ShuffleSpec, measure_shuffle
from stoker.order import BlockShuffle

if TYPE_CHECKING:
    import argparse

    from stoker.inspection.shuffle import ShuffleReport, ShuffleRow


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Add the command."""
    text = "how well no shuffle, a block shuffle and a full one mix a dataset, and how much of it they read at a time"
    parser = subparsers.add_parser("shuffle", help=text, description=text)
    spec = ShuffleSpec()
    add = parser.add_argument
    add("dataset", help="directory of a dataset; directory, pattern or file of TFRecords; images")
    add("--split", help="split to measure (default: the only one, or train)")
    text = "samples of a batch, of all ranks together (default %(default)s)"
    add("--batch-size", type=int, default=spec.batch_size, metavar="N", help=text)
    text = "samples of a block (default %(default)s)"
    add("--block", type=int, default=spec.shuffle.block, metavar="N", help=text)
    text = "blocks whose samples are mixed (default %(default)s)"
    add("--window", type=int, default=spec.shuffle.window, metavar="N", help=text)
    add("--seed", type=int, default=spec.seed, help="of the orders (default %(default)s)")
    add("--json", action="store_true", help="print one JSON document")
    return parser


def run(args: argparse.Namespace) -> int:
    """Measure, print, and return 0."""
    spec = ShuffleSpec(args.split, args.batch_size, BlockShuffle(args.block, args.window), args.seed)
    report = measure_shuffle(args.dataset, spec)
    if args.json:
        print_json(dataclasses.asdict(report))
    else:
        _print(report)
    return 0


def _print(report: ShuffleReport) -> None:
    printer = Printer()
    printer.line(
        f"{report.path}: {report.samples:,} samples of {report.split}, "
        f"batches of {report.batch_size:,}, blocks of {report.block:,}"
    )
    classes = f">classes in {report.class_batch:,} samples"
    printer.table(["order", ">quality", ">blocks read at a time", ">bytes of them", classes], map(_cells, report.rows))
    printer.line("quality: 1.00 mixes a batch as well as a full shuffle, 0.00 takes it from one place")


def _cells(row: ShuffleRow) -> tuple[str, ...]:
    size = "-" if row.bytes_read is None else format_size(row.bytes_read)
    classes = "-" if row.classes is None else f"{row.classes:.1f}"
    return (row.order, f"{row.quality:.2f}", f"{row.blocks_read:,}", size, classes)

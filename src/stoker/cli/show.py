"""``stoker show``: a contact sheet of random samples with their labels and boxes."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING

from stoker.cli.output import Printer, print_json
from stoker.inspection.contact_sheet import SheetSpec, write_contact_sheet

if TYPE_CHECKING:
    from stoker.inspection.contact_sheet import SheetReport

_SHOWN = 5


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Add the command."""
    text = "draw a contact sheet: random samples with their labels and boxes, as one PNG"
    parser = subparsers.add_parser("show", help=text, description=text)
    spec = SheetSpec()
    add = parser.add_argument
    add("dataset", help="directory of a dataset; directory, pattern or file of TFRecords; or its URL")
    add("--out", required=True, metavar="FILE.png", help="the picture to write")
    add("--split", help="split to show (default: the only one, or train)")
    add("--count", type=int, default=spec.count, metavar="N", help="samples (default %(default)s)")
    add("--seed", type=int, default=spec.seed, help="decides which samples (default %(default)s)")
    add("--columns", type=int, default=spec.columns, metavar="N", help="samples in a row (default %(default)s)")
    text = "draw annotated boxes (default: yes)"
    add("--boxes", action=argparse.BooleanOptionalAction, default=spec.boxes, help=text)
    add("--json", action="store_true", help="print one JSON document")
    return parser


def run(args: argparse.Namespace) -> int:
    """Write the sheet, print its path, and return 0."""
    spec = SheetSpec(args.split, args.count, args.seed, args.columns, args.boxes)
    report = write_contact_sheet(args.dataset, args.out, spec)
    if args.json:
        print_json(dataclasses.asdict(report))
    else:
        _print(report)
    return 0


def _print(report: SheetReport) -> None:
    printer = Printer()
    lines = [f"damaged: sample {key}: {problem}" for key, problem in report.damaged.items()]
    printer.some(lines, _SHOWN, "find all damage with 'stoker verify'")
    printer.line(
        f"{report.path}: {len(report.keys)} samples of {report.split}, {report.width} x {report.height} pixels"
    )

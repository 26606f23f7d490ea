"""``stoker show``: a contact sheet of random samples, or what the model sees of them."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING

from stoker.cli.output import Printer, print_json
from stoker.inspect import (
    NAMED_TRANSFORMS,
    SheetSpec,
    parse_epochs,
    parse_transforms,
    write_sheet,
)

if TYPE_CHECKING:
    from stoker.inspect import SheetReport

_SHOWN = 5


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Add the command."""
    text = (
        "draw a contact sheet: random samples with their labels and boxes, or what the model sees of them, as one PNG"
    )
    parser = subparsers.add_parser("show", help=text, description=text)
    add = parser.add_argument
    add("dataset", help="directory of a dataset; directory, pattern or file of TFRecords; images; or a URL")
    add("--out", required=True, metavar="FILE.png", help="the picture to write")
    add("--split", help="split to show (default: the only one, or train)")
    add("--count", type=int, metavar="N", help="samples (default 24, with --transforms 6)")
    text = "decides which samples; with --transforms also the seed of the loader (default %(default)s)"
    add("--seed", type=int, default=17, help=text)
    add("--columns", type=int, metavar="N", help="samples in a row (default 6); not with --transforms")
    names = ", ".join(NAMED_TRANSFORMS)
    text = f"show what a loader gives: {names}, or your own, such as 'RandomResizedCrop(96, hflip=0.5),eval'"
    add("--transforms", metavar="TRANSFORMS", help=text)
    add("--epochs", metavar="EPOCHS", help="with --transforms: in these epochs, such as 0-3 or 0,5,89 (default 0-3)")
    text = "draw annotated boxes (default: yes)"
    add("--boxes", action=argparse.BooleanOptionalAction, default=True, help=text)
    add("--json", action="store_true", help="print one JSON document")
    return parser


def run(args: argparse.Namespace) -> int:
    """Write the sheet, print its path, and return 0."""
    spec = SheetSpec(
        split=args.split,
        count=args.count,
        seed=args.seed,
        boxes=args.boxes,
        columns=args.columns,
        transforms=() if args.transforms is None else parse_transforms(args.transforms),
        epochs=None if args.epochs is None else parse_epochs(args.epochs),
    )
    report = write_sheet(args.dataset, args.out, spec)
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

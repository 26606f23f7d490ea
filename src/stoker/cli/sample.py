"""``stoker sample``: make a small tree of artificial photographs to try things on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stoker.cli import output
from stoker.config import format_count, format_size
from stoker.sample import SampleSpec, make_sample

if TYPE_CHECKING:
    import argparse

DESCRIPTION = "Make a small tree of artificial photographs in the shape of ImageNet, without any download."
EXAMPLES = ("stoker sample photos", "stoker sample photos --classes 10 --images 100 --damaged")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    spec = SampleSpec()
    parser.add_argument("directory", help="where to make it; new, empty, or the same sample")
    add = parser.add_argument_group("what is made").add_argument
    add("--classes", type=int, default=spec.classes, metavar="N", help="class folders (default %(default)s)")
    text = "images of each class (default %(default)s)"
    add("--images", type=int, default=spec.images_per_class, metavar="N", help=text)
    text = "validation images of each class (default %(default)s)"
    add("--validation", type=int, default=spec.validation_per_class, metavar="N", help=text)
    add("--seed", type=int, default=spec.seed, metavar="N", help="of everything random (default %(default)s)")
    add("--damaged", action="store_true", help="put damaged files among the others")


def run(args: argparse.Namespace) -> int:
    """Make the sample, report, and return 0."""
    spec = SampleSpec(args.classes, args.images, args.validation, args.seed, args.damaged)
    with output.shown_progress("making") as progress:
        report = make_sample(Path(args.directory), spec, progress)
    if args.json:
        output.document({"directory": args.directory, **output.fields_of(report)})
        return 0
    verb = "made" if report.is_new else "there already:"
    output.line(f"{verb} {format_count(report.images, 'image')}, {format_size(report.size_bytes)}, in {args.directory}")
    output.some([f"odd: {key}: {what}" for key, what in report.oddities.items()])
    output.some([f"damaged: {key}: {what}" for key, what in report.damaged.items()])
    output.detail(f"next: stoker plan {args.directory}")
    return 0

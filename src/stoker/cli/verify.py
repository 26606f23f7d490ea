"""``stoker verify``: check every checksum, record and image, and the counts against the manifest."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from stoker.cli import options, output
from stoker.config import check_range, format_count, format_size
from stoker.inspect import verify_dataset

if TYPE_CHECKING:
    import argparse

DESCRIPTION = "Check every checksum, every record and every image, and the counts against the manifest."
EXAMPLES = ("stoker verify dataset", "stoker verify 'tfrecords/train-*' --threads 8")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", help="dataset, or directory, pattern or file of TFRecords; or its URL")
    add = parser.add_argument_group("how it runs").add_argument
    add("--threads", type=int, metavar="N", help="checks at a time (default: one per CPU)")
    options.add_record(parser)


def run(args: argparse.Namespace) -> int:
    """Check, print, and return 0, or 4 if there is damage."""
    threads = None if args.threads is None else check_range("--threads", args.threads, 1, 4096)
    with output.shown_progress("verifying", bad="problems") as progress:
        report = verify_dataset(args.dataset, threads, progress, options.record_keys(args))
    if args.json:
        output.document(dataclasses.asdict(report))
        return output.EXIT_DAMAGED if report.problems else 0
    output.some([f"warning: {warning}" for warning in report.warnings])
    output.some([f"damage: {problem}" for problem in report.problems])
    if report.formats:
        output.detail(f"images: {output.counted(report.formats)}")
    rate = f"{report.records / report.seconds:,.0f} images/s, {format_size(report.size_bytes / report.seconds)}/s"
    shards, records = format_count(report.shards, "shard"), format_count(report.records, "record")
    size = f"{shards}, {records}, {format_size(report.size_bytes)}"
    verdict = format_count(len(report.problems), "problem") if report.problems else "no damage"
    output.line(f"verified {size} in {report.seconds:.1f} s ({rate}): {verdict}")
    return output.EXIT_DAMAGED if report.problems else 0

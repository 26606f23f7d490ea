"""``stoker export``: write a dataset in the formats of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.cli import options, output
from stoker.config import format_count, format_seconds, format_size
from stoker.exporting import FORMATS, export

if TYPE_CHECKING:
    import argparse

_SHOWN = 20

DESCRIPTION = "Write a dataset as image files, WebDataset or Parquet; images keep their bytes."
EXAMPLES = (
    "stoker export dataset images --to folder",
    "stoker export dataset tars --to webdataset --split train --shard-size 500MB",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", help="what 'stoker build' made, or TFRecords of any origin; or its URL")
    parser.add_argument("destination", help="new or empty folder of this machine")
    add = parser.add_argument_group("what is written").add_argument
    add("--to", choices=list(FORMATS), required=True, metavar="FORMAT", help=f"one of {', '.join(FORMATS)}")
    add("--split", metavar="NAME", help="only this split (default: all)")
    text = "length of a tar or Parquet file (default %(default)s)"
    add("--shard-size", metavar="SIZE", default="1GB", help=text)
    text = "leave out up to N damaged records (default 0: the first one stops the export)"
    add("--max-rejects", type=int, default=0, metavar="N", help=text)
    options.add_record(parser)


def run(args: argparse.Namespace) -> int:
    """Export, report, and return 0."""
    with output.shown_progress("exporting", "records") as progress:
        report = export(
            args.dataset,
            args.destination,
            args.to,
            split=args.split,
            shard_size=args.shard_size,
            max_rejects=args.max_rejects,
            keys=options.record_keys(args),
            progress=progress,
        )
    if args.json:
        output.document(
            {
                "destination": args.destination,
                "to": args.to,
                "splits": report.splits,
                "rejects": [{"record": reject.key, "reason": reject.reason} for reject in report.rejects],
                "seconds": round(report.seconds, 3),
            }
        )
        return 0
    rows = [(name, s.records, s.files, format_size(s.size_bytes)) for name, s in report.splits.items()]
    output.table(("split", "records", "files", "size"), rows)
    lines = [f"rejected: {reject.key}: {reject.reason}" for reject in report.rejects]
    output.some(lines, _SHOWN, "--json lists them all")
    records = format_count(sum(split.records for split in report.splits.values()), "record")
    output.line(f"{records} to {args.destination} as {args.to}, {format_seconds(report.seconds)}")
    return 0

"""``stoker index``: make existing TFRecords random-access."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING

from stoker.cli import options, output
from stoker.config import format_count
from stoker.inspect import index_shards

if TYPE_CHECKING:
    import argparse

DESCRIPTION = "Write the index beside TFRecords of any origin, so that they can be read in any order without a rebuild."
EXAMPLES = ("stoker index tfrecords", "stoker index 'tfrecords/train-*' gs://bucket/tfrecords")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", help="TFRecords, directories of them, or patterns; or their URLs")
    options.add_record(parser)


def run(args: argparse.Namespace) -> int:
    """Write the indexes, print, and return 0, 4 if a file is damaged, else 1 if one could not be read or written."""
    with output.shown_progress("indexing", "files", "without an index") as progress:
        results = index_shards(args.files, progress, options.record_keys(args))
    counts = Counter(result.outcome for result in results)
    if args.json:
        output.document({"shards": [dataclasses.asdict(result) for result in results]})
    else:
        output.some([f"{result.outcome}: {result.problem}" for result in results if result.problem])
        records = format_count(sum(result.records for result in results), "record")
        outcomes = ", ".join(f"{number:,} {what}" for what, number in counts.items())
        output.line(f"{format_count(len(results), 'file')}, {records}: {outcomes}")
    return output.EXIT_DAMAGED if "damaged" in counts else output.EXIT_FAILED if "failed" in counts else 0

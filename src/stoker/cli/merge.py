"""``stoker merge``: join several datasets into one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.cli import output
from stoker.config import format_count, format_seconds, format_size
from stoker.merging import merge

if TYPE_CHECKING:
    import argparse

DESCRIPTION = "Join datasets without decoding their images; classes are told by their names. Run it again to resume."
EXAMPLES = ("stoker merge spring autumn year", "stoker merge --link spring autumn year")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("datasets", nargs="+", help="what 'stoker build' or 'stoker repack' made; or their URLs")
    text = "new or empty directory, or that of an unfinished merge; or its URL"
    parser.add_argument("destination", help=text)
    add = parser.add_argument_group("how shards are taken").add_argument
    add("--link", action="store_true", help="as hard links instead of copies, where they stay as they are")


def run(args: argparse.Namespace) -> int:
    """Merge, report, and return 0."""
    with output.shown_progress("merging", "records") as progress:
        report = merge(args.datasets, args.destination, link=args.link, progress=progress)
    manifest = report.manifest
    if args.json:
        splits = {
            name: {"records": split.records, "bytes": split.size_bytes, "shards": len(split.shards)}
            for name, split in manifest.splits.items()
        }
        output.document(
            {
                "outcome": report.outcome,
                "destination": args.destination,
                "dataset_id": manifest.dataset_id,
                "splits": splits,
                "classes": manifest.classes,
                "rejects": manifest.rejects,
                "copied_shards": report.copied_shards,
                "rewritten_shards": report.rewritten_shards,
                "resumed_shards": report.resumed_shards,
                "seconds": round(report.seconds, 3),
            }
        )
        return 0
    if report.outcome == "complete":
        output.line(f"{args.destination} is complete already: dataset {manifest.dataset_id}, nothing to do")
        return 0
    rows = [(name, s.records, len(s.shards), format_size(s.size_bytes)) for name, s in manifest.splits.items()]
    output.table(("split", "records", "shards", "size"), rows)
    parts = [f"{format_count(report.copied_shards, 'shard')} {'linked' if args.link else 'copied'}"]
    parts += [f"{report.rewritten_shards:,} with new class ids"] * (report.rewritten_shards > 0)
    parts += [f"{report.resumed_shards:,} from an earlier run"] * (report.resumed_shards > 0)
    took = format_seconds(report.seconds)
    output.line(f"{', '.join(parts)}; {format_count(manifest.classes, 'class')}, {took}")
    output.line(f"dataset {manifest.dataset_id} in {args.destination}")
    return 0

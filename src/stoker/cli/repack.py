"""``stoker repack``: turn records of any known layout into a dataset of any other."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from stoker.builder import build_source, check_destination
from stoker.cli import options, output
from stoker.cli.build import announcer, overwriter, report_build
from stoker.format import ImagenetSchema
from stoker.loader import open_records
from stoker.storage import location

if TYPE_CHECKING:
    import argparse

DESCRIPTION = "Turn TFRecords of any known layout into a dataset of any other. Run the same command again to resume."
EXAMPLES = (
    "stoker repack tfrecords dataset",
    "stoker repack tfrecords dataset --image-key jpg --label-key cls",
    "stoker repack dataset smaller --resize short:256 --shards 64",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help="dataset, or directory, pattern or file of TFRecords; or its URL")
    text = "new or empty directory, or that of an unfinished build; or its URL"
    parser.add_argument("destination", help=text)
    options.add_record(parser, base="--from-label-base")
    options.add_declared(parser, "which images", "selection")
    options.add_dataset(parser)
    options.add_overwrite(options.add_declared(parser, "how it runs", "running"))


def run(args: argparse.Namespace) -> int:
    """Build, report, and return 0, or 3 when the manifest is withheld."""
    settings = options.build_settings(args)
    destination = location(args.destination)
    chosen = args.preset is not None or args.label_base is not None
    check_destination(destination, args.source)
    with output.shown_progress("listing") as progress:
        source = open_records(
            args.source,
            options.record_keys(args),
            label_base=settings.schema.label_base if chosen else 0,
            keeps_boxes=settings.schema.info(0).box_prefix is not None,
            crop_objects=settings.options.crop_objects,
            progress=progress,
        )
    if not chosen:  # no option asks for other class ids than those of the records
        settings = dataclasses.replace(settings, schema=ImagenetSchema(source.label_base))
    with output.shown_progress("building") as progress:
        report = build_source(
            source, settings, destination, progress, announcer(args, settings), overwrite=overwriter(args)
        )
    return report_build(report, args)

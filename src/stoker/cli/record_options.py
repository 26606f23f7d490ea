"""The options of every command that reads records: what a person says about TFRecords that Stoker did not write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.format import RecordKeys

if TYPE_CHECKING:
    import argparse


def add_record_options(parser: argparse.ArgumentParser, *, base: str = "--label-base") -> None:
    """Add them; ``base`` is what the option of the label base is called, where that name means something else."""
    add = parser.add_argument_group("TFRecords that Stoker did not write").add_argument
    add("--image-key", metavar="KEY", help="key of the image (default: found from the first record)")
    add("--label-key", metavar="KEY", help="key of the class (default: found; none with --image-key alone)")
    text = "number of their first class, 0 or 1 (default 0: labels as they are stored)"
    add(base, type=int, choices=[0, 1], metavar="N", dest="records_label_base", help=text)


def record_keys(args: argparse.Namespace) -> RecordKeys | None:
    """Return what the options say; None where none is given."""
    keys = RecordKeys(args.image_key, args.label_key, args.records_label_base)
    return None if keys == RecordKeys() else keys

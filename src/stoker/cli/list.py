"""``stoker list``: write a list of files, which ``stoker build`` and ``stoker.open`` take as a source."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from stoker.cli import output
from stoker.config import check_range, refuse_ineffective
from stoker.errors import SourceError
from stoker.sources import find_files, shuffled
from stoker.storage import location

if TYPE_CHECKING:
    import argparse

DESCRIPTION = (
    "List files, one absolute path or URL a line, in the order of their bytes. The list is a source of images."
)
EXAMPLES = (
    "stoker list 'photos/**/*.jpg' --out files.txt",
    "stoker list 'gs://bucket/*/*.jpg' --shuffle --seed 7 --out files.txt",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = "files or URLs; in quotes, ** stands for any number of folders"
    parser.add_argument("patterns", nargs="+", metavar="GLOB", help=text)
    add = parser.add_argument_group("the list").add_argument
    add("--out", metavar="FILE", help="where to write the list (default: standard output)")
    add("--shuffle", action="store_true", help="put the paths into a seeded order")
    add("--seed", type=int, metavar="N", help="with --shuffle: of the order (default 0)")


def run(args: argparse.Namespace) -> int:
    """Write the list and return 0."""
    if not args.shuffle:
        refuse_ineffective({"seed": args.seed}, "without --shuffle", "give both, or omit it")
    if args.out is not None:
        output.check_writable("--out", args.out)
    seed = check_range("--seed", args.seed or 0, 0, 2**63 - 1)
    out = None if args.out is None else location(args.out).absolute()
    own = None if out is None else os.fsencode(str(out))
    paths = [path for path in find_files(args.patterns) if path != own]  # a list does not list itself
    if not paths:
        raise SourceError(f"no file but {args.out} itself matches {' '.join(args.patterns)}", path=args.out)
    if args.shuffle:
        paths = shuffled(paths, seed)
    data = b"".join(path + b"\n" for path in paths)
    if out is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return 0
    out.write_atomically(data)
    output.line(f"{len(paths):,} paths in {args.out}")
    return 0

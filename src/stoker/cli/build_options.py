"""The options that ``plan`` and ``build`` share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.build.settings import BuildSettings, SourceSettings
from stoker.config import available_cpus, parse_size
from stoker.errors import ConfigError
from stoker.recipe import Encode, Recipe, parse_encode, parse_resize
from stoker.recipe.recipe import FILTERS
from stoker.schema import ImagenetSchema

if TYPE_CHECKING:
    import argparse


def add_build_options(parser: argparse.ArgumentParser) -> None:
    """Add everything that decides what a dataset will hold, and the number of threads."""
    add = parser.add_argument
    add("source", help="tree of class folders, or of train/, validation/ and test/ with class folders")
    add("--shards", type=int, metavar="N", help="shards of train (default: as many as --shard-size asks for)")
    add("--shard-size", metavar="SIZE", help="length of a shard, such as 128MB (default) or 1GiB")
    add("--validation-shards", type=int, metavar="N", help="shards of validation (default: its share by bytes)")
    add("--split-fraction", metavar="SPLIT=F", help="hold out a seeded part of every class: validation=0.1")
    add("--recipe", choices=["keep"], help="keep: store the bytes of every JPEG unchanged (default without --resize)")
    add("--resize", metavar="HOW", help="short:256, long:512, max:512, exact:300x300 or square:300")
    add("--encode", metavar="HOW", help="with --resize: jpeg:90 (default), jpeg:90:420 or jpeg:90:444")
    add("--filter", choices=FILTERS, help="with --resize: resampling filter (default bicubic)")
    add("--check", choices=["header", "decode"], default="header", help="how kept JPEGs are checked (default header)")
    add("--exif", choices=["keep", "apply"], default="keep", help="EXIF orientation: as stored (default) or applied")
    add("--max-pixels", type=int, metavar="N", default=2**27, help="reject larger images (default %(default)s)")
    add("--label-base", type=int, choices=[0, 1], default=1, help="number of the first class (default 1)")
    add("--class-names", metavar="FILE", help="class, tab and text on each line (default: imagenet_metadata.txt)")
    add("--boxes", metavar="DIR", help="folder of the XML annotations (default: looked for beside the images)")
    add("--seed", type=int, default=0, help="of the order of the records (default 0)")
    add("--threads", type=int, default=available_cpus(), metavar="N", help="default: the CPUs available, %(default)s")
    add("--json", action="store_true", help="print one JSON document")


def build_settings(args: argparse.Namespace, max_rejects: int = 0) -> BuildSettings:
    """Return the settings that the options stand for.

    Raises:
        ConfigError: An option is out of range, or contradicts another.
    """
    if args.shards is not None and args.shard_size is not None:
        raise ConfigError("--shards and --shard-size contradict each other; give one of them")
    size = {} if args.shard_size is None else {"shard_bytes": parse_size(args.shard_size)}
    held_out = None if args.split_fraction is None else _held_out(args.split_fraction)
    return BuildSettings(
        source=SourceSettings(args.source, args.boxes, args.class_names, held_out),
        recipe=_recipe(args),
        schema=ImagenetSchema(args.label_base),
        shards=args.shards,
        validation_shards=args.validation_shards,
        seed=args.seed,
        threads=args.threads,
        max_rejects=max_rejects,
        **size,
    )


def _recipe(args: argparse.Namespace) -> Recipe:
    if args.resize is None and (args.encode is not None or args.filter is not None):
        raise ConfigError("--encode and --filter say how to --resize; give --resize too, or leave them away")
    if args.resize is not None and args.recipe is not None:
        raise ConfigError("--recipe keep and --resize contradict each other; give one of them")
    return Recipe(
        resize=None if args.resize is None else parse_resize(args.resize),
        encode=Encode() if args.encode is None else parse_encode(args.encode),
        filter=args.filter or "bicubic",
        check=args.check,
        exif=args.exif,
        max_pixels=args.max_pixels,
    )


def _held_out(text: str) -> tuple[str, float]:
    split, _, fraction = text.partition("=")
    try:
        return split, float(fraction)
    except ValueError:
        raise ConfigError(f"--split-fraction {text!r} is not understood; write validation=0.1") from None

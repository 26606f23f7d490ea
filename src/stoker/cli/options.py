"""The options that ``plan``, ``build`` and ``repack`` share."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stoker.builder import (
    DEFAULT_SHARD_BYTES,
    PRESETS,
    BuildSettings,
    LocalEngine,
    ShardSettings,
    SourceSettings,
    find_preset,
)
from stoker.cli.parser import UsageError
from stoker.config import available_cpus, parse_size
from stoker.errors import ConfigError
from stoker.format import ShardNaming
from stoker.recipe import CHECKS, FILTERS, JpegEncode, RawEncode, Recipe, parse_encode, parse_resize
from stoker.sources import SourceOptions
from stoker.storage import location

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from stoker.builder import EngineFactory, Preset


_SOURCE_OPTIONS = ("boxes", "class_names", "labels", "validation_labels")
_CONTRADICTIONS = (
    ("resize", "img_size"),
    ("encode", "quality"),
    ("shards", "shard_size"),
)


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """Add everything that says which images there are, and of which class."""
    add = add_selection_options(parser).add_argument
    text = "list of the classes in the order of their labels, or imagenet: its 1,000 (default: folders, sorted)"
    add("--labels", metavar="FILE", help=text)
    text = "classes of flat validation images: a list, or ImageNet's devkit (default: searched for)"
    add("--validation-labels", metavar="FILE", help=text)
    add("--class-names", metavar="FILE", help="class, tab and text on each line (default: imagenet_metadata.txt)")
    add("--boxes", metavar="PLACE", help="annotations: folder or tar of XML files, or CSV (default: searched for)")


def add_selection_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add what chooses among the images, wherever they come from; return its group."""
    group = parser.add_argument_group("which images")
    add = group.add_argument
    add("--num-images", type=int, default=-1, metavar="N", help="take N images of train, a seeded choice (-1: all)")
    text = "move a seeded part of every class of train to another split: val=0.1 or test=0.1"
    add("--split-fraction", metavar="SPLIT=F", help=text)
    add("--crop-objects", action="store_true", help="store a record of every annotated object instead of every image")
    return group


def add_dataset_options(parser: argparse.ArgumentParser) -> None:
    """Add everything that says what becomes of the images, and the number of threads."""
    add = parser.add_argument_group("what is stored").add_argument
    text = f"layout that readers of another system expect: {', '.join(PRESETS)}"
    add("--preset", choices=list(PRESETS), metavar="NAME", help=text)
    add("--resize", metavar="HOW", help="short:256, long:512, max:512, exact:300x300, square:300 or off (default)")
    add("--img-size", type=int, metavar="N", help="the same as --resize square:N")
    add("--encode", metavar="HOW", help="jpeg:90 (default with --resize), jpeg:90:420, jpeg:90:444, raw or raw:CHW")
    add("--quality", type=int, metavar="Q", help="the same as --encode jpeg:Q")
    text = f"with --resize, resampling filter (default bicubic): {', '.join(FILTERS)}"
    add("--filter", choices=FILTERS, metavar="NAME", help=text)
    text = "with --resize, decode like libjpeg's accurate decoder (exact, default), or faster and close to it (fast)"
    add("--decode", choices=["exact", "fast"], metavar="HOW", default="exact", help=text)
    text = "keep: store every JPEG as it is (default without --resize); restart: add restart markers, without loss"
    add("--recipe", choices=["keep", "restart"], metavar="HOW", help=text)
    text = "how JPEGs that are kept are checked: header (default), entropy (all data, without making pixels), or decode"
    add("--check", choices=CHECKS, metavar="HOW", help=text)
    text = "EXIF orientation: keep it as stored (default), or apply it"
    add("--exif", choices=["keep", "apply"], metavar="HOW", default="keep", help=text)
    add("--max-pixels", type=int, metavar="N", default=2**27, help="reject larger images (default %(default)s)")
    text = "number of the first class, 0 or 1 (default 0; 1 with --preset imagenet and imagenet-nvidia)"
    add("--label-base", type=int, choices=[0, 1], metavar="N", help=text)
    add = parser.add_argument_group("shards").add_argument
    text = "number of shards of train (default: as many as --shard-size makes)"
    add("--shards", "--num-shards", type=int, metavar="N", help=text)
    add("--shard-size", metavar="SIZE", help="length of a shard, such as 1GiB (default 128MB)")
    text = "number of shards of validation (default: its share by bytes)"
    add("--validation-shards", type=int, metavar="N", help=text)
    add("--shard-names", metavar="HOW", help="default, google, tfds:NAME, part, per-class, or a template")
    text = "of whole shards: none (default), gzip or zlib"
    add("--compression", choices=["none", "gzip", "zlib"], metavar="HOW", help=text)
    add("--seed", type=int, default=0, metavar="N", help="of the order of the records (default 0)")


def add_running_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add how a build runs, and what a person may agree to; return the group."""
    group = parser.add_argument_group("how it runs")
    add = group.add_argument
    text = "images converted at a time (default: %(default)s, one per CPU)"
    add("--threads", "--num-workers", type=int, default=available_cpus(), metavar="N", help=text)
    text = "publish the manifest with up to N images missing (default 0)"
    add("--max-rejects", type=int, default=0, metavar="N", help=text)
    add("--yes", action="store_true", help="build also what is huge or may not fit on the disk")
    return group


def build_settings(args: argparse.Namespace) -> BuildSettings:
    """Return the settings that the options stand for.

    Raises:
        UsageError: An option is out of range, or contradicts another.
    """
    preset = find_preset(args.preset)
    return BuildSettings(
        source=_source(args, preset),
        recipe=_recipe(args, preset),
        schema=preset.make_schema(args.label_base),
        shards=_shards(args, preset),
        seed=args.seed,
        threads=args.threads,
        max_rejects=getattr(args, "max_rejects", 0),
        accept_size=getattr(args, "yes", False),
        numbered_labels=preset.numbered_labels,
    )


def _source(args: argparse.Namespace, preset: Preset) -> SourceSettings:
    if args.num_images != -1 and args.num_images < 1:
        raise UsageError(f"--num-images is {args.num_images}; give a number of images, or -1 for all")
    return SourceSettings(
        root=args.source,
        options=SourceOptions(
            **{name: getattr(args, name, None) for name in _SOURCE_OPTIONS}, imagenet_labels=preset.imagenet_labels
        ),
        held_out=None if args.split_fraction is None else _held_out(args.split_fraction),
        limit=None if args.num_images == -1 else args.num_images,
        crop_objects=args.crop_objects,
    )


def _recipe(args: argparse.Namespace, preset: Preset) -> Recipe:
    _refuse_contradictions(args)
    if args.recipe == "keep":
        resize_text: str = "off"
    elif args.img_size is not None:
        resize_text = f"square:{args.img_size}"
    else:
        resize_text = args.resize or preset.resize
    resize = parse_resize(resize_text)
    encode = _encode(args, preset)
    if (resize is not None or isinstance(encode, RawEncode)) and args.check is not None:
        raise UsageError("--check has no effect where every image is decoded anyway; omit it")
    if resize is None and args.filter is not None:
        raise UsageError("--filter has no effect without --resize; give --resize too, or omit it")
    if resize is None and isinstance(encode, JpegEncode) and (args.encode or args.quality is not None):
        raise UsageError("--encode and --quality have no effect without --resize; give --resize too, or omit them")
    return Recipe(
        resize=resize,
        encode=encode,
        filter=args.filter or preset.filter or "bicubic",
        check=args.check or "header",
        exif=args.exif,
        max_pixels=args.max_pixels,
        restart=args.recipe == "restart",
        decode=args.decode,
    )


def _encode(args: argparse.Namespace, preset: Preset) -> JpegEncode | RawEncode:
    if args.quality is not None:
        return JpegEncode(args.quality)
    text = args.encode or preset.encode
    return JpegEncode() if text is None else parse_encode(text)


def _refuse_contradictions(args: argparse.Namespace) -> None:
    keeping = (("recipe", "resize"), ("recipe", "img_size")) if args.recipe == "keep" else ()
    for first, second in (*keeping, *_CONTRADICTIONS):
        if getattr(args, first) is not None and getattr(args, second) is not None:
            names = " and ".join(f"--{name.replace('_', '-')}" for name in (first, second))
            raise UsageError(f"{names} contradict each other; give one of them")


def _shards(args: argparse.Namespace, preset: Preset) -> ShardSettings:
    counted = args.shards is not None or args.validation_shards is not None or args.shard_size is not None
    if args.shard_names == "per-class" and args.shard_size is not None:
        raise UsageError("--shard-size has no effect with --shard-names per-class, which makes a shard of every class")
    names = args.shard_names or preset.shard_names
    if args.shard_names is None and names == "per-class" and counted:
        names = "default"  # the preset's own names leave no choice of shards
    if names == "tfds":
        names = f"tfds:{_dataset_name(args.source)}"
    return ShardSettings(
        naming=ShardNaming(names),
        train=args.shards,
        validation=args.validation_shards,
        preferred=None if counted else preset.shards,
        size_bytes=DEFAULT_SHARD_BYTES if args.shard_size is None else parse_size(args.shard_size),
        compression=args.compression or preset.compression,
    )


def _dataset_name(source: str) -> str:
    """Return a name for TFDS, which allows lower-case letters, digits and underscores."""
    place = location(source).absolute()
    name = re.sub(r"[^a-z0-9]+", "_", place.name.removesuffix(place.suffix).lower()).strip("_")
    return name if name[:1].isalpha() else f"images_{name}".rstrip("_")


def _held_out(text: str) -> tuple[str, float]:
    split, _, fraction = text.partition("=")
    try:
        return split, float(fraction)
    except ValueError:
        raise UsageError(f"--split-fraction {text!r} is not understood; write validation=0.1") from None


def add_overwrite_option(group: argparse._ArgumentGroup) -> None:
    """Add what lets a build remove an older dataset."""
    text = "remove the dataset at the destination first, if Stoker wrote it; asks, or needs --yes"
    group.add_argument("--overwrite", action="store_true", help=text)


def add_engine_options(group: argparse._ArgumentGroup) -> None:
    """Add what says where a build runs."""
    add = group.add_argument
    text = "local: threads of this machine (default); spark: a cluster"
    add("--engine", choices=["local", "spark"], metavar="NAME", default="local", help=text)
    text = "with --engine spark: local[4], spark://HOST:7077, yarn, ... (default: what Spark's configuration says)"
    add("--master", metavar="URL", help=text)
    text = "with --engine spark: a property, such as spark.executor.memory=2g; may be repeated"
    add("--spark-conf", metavar="NAME=VALUE", action="append", default=[], help=text)


@contextmanager
def chosen_engine(args: argparse.Namespace) -> Iterator[EngineFactory]:
    """Keep the engine that the options name while the ``with`` block runs.

    Raises:
        UsageError: An option is for another engine, or is not understood.
        ClusterError: Spark does not start.
    """
    if args.engine == "local":
        if args.master is not None or args.spark_conf:
            raise UsageError("--master and --spark-conf have no effect without --engine spark; give it, or omit them")
        yield LocalEngine
        return
    settings = dict(_setting(text) for text in args.spark_conf)
    try:
        from stoker import spark  # noqa: PLC0415 - pyspark is an extra
    except ModuleNotFoundError as error:
        raise ConfigError(f"no module {error.name!r}; run pip install 'stoker[spark]'") from error
    with spark.started_session(args.master, settings) as session:
        yield spark.engine(session)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise UsageError(f"--spark-conf {text} is not understood; write it as spark.executor.memory=2g")
    return name, value

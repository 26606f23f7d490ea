"""The options that ``plan``, ``build`` and ``repack`` share."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from stoker.builder import COMPRESSIONS, DECODES, EXIF, PRESETS, RECIPES, BuildOptions, LocalEngine
from stoker.cli.parser import UsageError
from stoker.config import available_cpus
from stoker.errors import ConfigError
from stoker.recipe import CHECKS, FILTERS, MAX_PIXELS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from stoker.builder import BuildSettings, EngineFactory


_ALL = -1
"""What ``--num-images`` says by default."""


def add_source_options(parser: argparse.ArgumentParser) -> None:
    """Add everything that says which images there are, and of which class."""
    add = add_selection_options(parser).add_argument
    text = "list of the classes in the order of their labels, or imagenet: its 1,000 (default: folders, sorted)"
    add("--labels", metavar="FILE", help=text)
    text = "classes of flat validation images: a list, or ImageNet's devkit (default: searched for)"
    add("--validation-labels", metavar="FILE", help=text)
    add("--class-names", metavar="FILE", help="class, tab and text on each line (default: imagenet_metadata.txt)")
    add("--boxes", metavar="PLACE", help="annotations: folder or tar of XML files, or CSV (default: searched for)")
    text = "draw the objects of a COCO file as masks, the field mask of each record; needs stoker[coco]"
    add("--masks", action="store_true", help=text)


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
    text = "how every image is stored: jpeg:90, jpeg:90:420, jpeg:90:444, jpeg:90:standard, png, webp:90, "
    text += "webp:lossless, raw or raw:CHW"
    text += " (default: as it is, or as PNG; with --resize, JPEG and lossy WebP as jpeg:90, others as PNG)"
    add("--encode", metavar="HOW", help=text)
    add("--quality", type=int, metavar="Q", help="the same as --encode jpeg:Q")
    text = f"with --resize, resampling filter (default bicubic): {', '.join(FILTERS)}"
    add("--filter", choices=FILTERS, metavar="NAME", help=text)
    text = "with --resize, decode like libjpeg's accurate decoder (exact, default), or faster and close to it (fast)"
    add("--decode", choices=DECODES, metavar="HOW", default="exact", help=text)
    text = "keep: store every JPEG, PNG and WebP as it is (default without --resize); restart: the same with restart"
    text += " markers in JPEGs, without loss"
    add("--recipe", choices=RECIPES, metavar="HOW", help=text)
    text = (
        "how images that are kept are checked: header (default), entropy (all data, without making pixels), or decode"
    )
    add("--check", choices=CHECKS, metavar="HOW", help=text)
    text = "EXIF orientation: keep it as stored (default), or apply it"
    add("--exif", choices=EXIF, metavar="HOW", default="keep", help=text)
    add("--max-pixels", type=int, metavar="N", default=MAX_PIXELS, help="reject larger images (default %(default)s)")
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
    add("--compression", choices=COMPRESSIONS, metavar="HOW", help=text)
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
    given = {name: getattr(args, name) for name in BuildOptions.names() if hasattr(args, name)}
    given["num_images"] = None if args.num_images == _ALL else args.num_images
    given["allow_huge"] = args.yes
    for name, short, made in (("resize", "img_size", "square:{}"), ("encode", "quality", "jpeg:{}")):
        value = getattr(args, short)
        if value is not None and given[name] is not None:
            raise UsageError(f"--{name} and --{short.replace('_', '-')} contradict each other; give one of them")
        if value is not None:
            given[name] = made.format(value)
    try:
        return BuildOptions(**given).settings(args.source)
    except ConfigError as error:
        raise UsageError(str(error)) from error


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

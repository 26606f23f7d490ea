"""Options that several commands share: those of all that build, and those of all that read TFRecords."""

from __future__ import annotations

import argparse
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stoker.builder import BuildOptions, LocalEngine
from stoker.cli.parser import UsageError
from stoker.config import option_of, refuse_contradicting, refuse_ineffective
from stoker.declare import declared
from stoker.errors import ConfigError
from stoker.format import RecordKeys
from stoker.sources import SourceOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.builder import BuildSettings, EngineFactory
    from stoker.declare import Setting


_ALL = -1
"""The value of ``--num-images`` that means all."""

_LITERAL = re.compile(r"``(.+?)``")


def add_dataset(parser: argparse.ArgumentParser) -> None:
    """Add the options for how images are stored, and in which shards."""
    stored = add_declared(parser, "what is stored", "stored")
    stored.add_argument("--img-size", type=int, metavar="N", help="the same as --resize square:N")
    stored.add_argument("--quality", type=int, metavar="Q", help="the same as --encode jpeg:Q")
    add_declared(parser, "shards", "shards")


def add_declared(parser: argparse.ArgumentParser, title: str, *names: str) -> argparse._ArgumentGroup:
    """Add a group of options: the settings of builds that are declared for the groups ``names``; return it."""
    group = parser.add_argument_group(title)
    for setting in declared(BuildOptions):
        command = setting.command
        if command is None or command.group not in names:
            continue
        options, text = command.names or (option_of(setting.name),), _help(setting)
        if bool in setting.types:
            action = "store_true" if setting.default is False else argparse.BooleanOptionalAction
            group.add_argument(*options, action=action, help=text)
            continue
        choices = setting.words or command.choices or None
        kind = int if int in setting.types and str not in setting.types else str
        more = {"choices": choices, "metavar": command.metavar, "default": setting.default}
        group.add_argument(*options, type=kind, help=text, **more)
    return group


def _help(setting: Setting) -> str:
    """Return the help of a setting in the form of the command line: ``number of shards of train (default: ...)``."""
    named = {each.name for each in declared(BuildOptions)}
    text = _LITERAL.sub(lambda word: option_of(word[1]) if word[1] in named else word[1].strip('"'), setting.help)
    text, _, default = text.removesuffix(".").partition(". Default: ")
    if setting.words and not any(word in text for word in setting.words):
        text += f": {', '.join(setting.words)}"
    if default:
        text += f" (default: {default})"
    first = text[:1] if text[1:2].isupper() else text[:1].lower()
    return (first + text[1:]).replace("%", "%%")


def build_settings(args: argparse.Namespace) -> BuildSettings:
    """Return the settings of a build that the options give."""
    known = [setting.name for setting in declared(BuildOptions)]
    given = {name: getattr(args, name) for name in known if hasattr(args, name)}
    given["num_images"] = None if args.num_images == _ALL else args.num_images
    given["allow_huge"] = args.yes
    try:
        for name, short, template in (("resize", "img_size", "square:{}"), ("encode", "quality", "jpeg:{}")):
            value = getattr(args, short)
            refuse_contradicting({name: given[name], short: value})
            if value is not None:
                given[name] = template.format(value)
        return BuildOptions(**given).settings(args.source)
    except ConfigError as error:
        raise UsageError(str(error)) from error


def add_overwrite(group: argparse._ArgumentGroup) -> None:
    """Add the option that lets a build remove an older dataset."""
    text = "remove the dataset at the destination first, if Stoker wrote it; asks, or needs --yes"
    group.add_argument("--overwrite", action="store_true", help=text)


def add_engine(group: argparse._ArgumentGroup) -> None:
    """Add the options for where a build runs."""
    add = group.add_argument
    text = "local: threads of this machine (default); spark: a cluster"
    add("--engine", choices=["local", "spark"], metavar="NAME", default="local", help=text)
    text = "with --engine spark: local[4], spark://HOST:7077, yarn, ... (default: what Spark's configuration says)"
    add("--master", metavar="URL", help=text)
    text = "with --engine spark: a property, such as spark.executor.memory=2g; may be repeated"
    add("--spark-conf", metavar="NAME=VALUE", action="append", default=[], help=text)


@contextmanager
def chosen_engine(args: argparse.Namespace) -> Iterator[EngineFactory]:
    """Yield the engine that the options name, open while the ``with`` block runs."""
    if args.engine == "local":
        given = {"master": args.master, "spark_conf": args.spark_conf or None}
        refuse_ineffective(given, "without --engine spark", "give it too, or omit it")
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


def add_record(parser: argparse.ArgumentParser, *, base: str = "--label-base") -> None:
    """Add the options for TFRecords of other origin; ``base`` is the name of the option for the label base."""
    add = parser.add_argument_group("TFRecords that Stoker did not write").add_argument
    add("--image-key", metavar="KEY", help="key of the image (default: found from the first record)")
    add("--label-key", metavar="KEY", help="key of the class (default: found; none with --image-key alone)")
    text = "number of their first class, 0 or 1 (default 0: labels as they are stored)"
    add(base, type=int, choices=[0, 1], metavar="N", dest="records_label_base", help=text)


def add_opening(parser: argparse.ArgumentParser) -> None:
    """Add the options for what is opened: TFRecords of other origin, or images."""
    add_record(parser)
    add_declared(parser, "images that are not built", "source")


def source_options(args: argparse.Namespace) -> SourceOptions:
    """Return the options of a source of images."""
    return SourceOptions.among(vars(args))


def record_keys(args: argparse.Namespace) -> RecordKeys | None:
    """Return the keys of records that the options name; None if none is given."""
    keys = RecordKeys(args.image_key, args.label_key, args.records_label_base)
    return None if keys == RecordKeys() else keys

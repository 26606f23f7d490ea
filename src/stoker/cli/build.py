"""``stoker build``: turn images into a dataset."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from stoker.builder import build_files, build_part_of_files, chosen_part
from stoker.cli import options, output
from stoker.cli.parser import UsageError
from stoker.config import format_count, format_seconds, format_size
from stoker.errors import ConfigError, DestinationError
from stoker.sources import SOURCE_KINDS
from stoker.storage import location

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from stoker.builder import BuildReport, BuildSettings, ExpectedSize, Part, PartReport
    from stoker.storage import Location


_SHOWN = 5
_SIDE, _QUALITY = 352, 90  # what --ask offers
_MAX_DIGITS = 9

DESCRIPTION = "Turn images into TFRecord shards, an index and a manifest. Run the same command again to resume."
EXAMPLES = (
    "stoker build photos dataset",
    "stoker build photos dataset --resize short:256 --encode jpeg:90",
    "stoker build imagenet gs://bucket/imagenet --preset imagenet --threads 16",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "stoker build [OPTIONS] SOURCE DESTINATION"
    # Not nargs="?", which would miss the second argument behind an option; --ask needs neither argument.
    parser.add_argument("source", help=f"{SOURCE_KINDS}; or its URL").required = False
    text = "new or empty directory, or that of an unfinished build; or its URL (gs://, s3://, hdfs://)"
    parser.add_argument("destination", help=text).required = False
    options.add_declared(parser, "which images", "source", "selection")
    options.add_dataset(parser)
    group = options.add_declared(parser, "how it runs", "running")
    options.add_overwrite(group)
    options.add_engine(group)
    text = "build part N of M, numbered from 0, while other processes build the others; auto: in an array of Slurm or"
    group.add_argument("--part", metavar="N/M", help=f"{text} an indexed job of Kubernetes, the part they say")
    text = "build no shard, but publish the dataset once all parts have ended"
    group.add_argument("--finish", action="store_true", help=text)
    text = "ask for directories, size and quality as NVIDIA's script does, or take them from its environment variables"
    group.add_argument("--ask", action="store_true", help=text)


def run(args: argparse.Namespace) -> int:
    """Build, report, and return 0, or 3 when the manifest is withheld."""
    if args.ask:
        _ask_settings(args)
    if args.source is None or args.destination is None:
        raise UsageError("a build needs a source and a destination: stoker build SOURCE DESTINATION, or --ask")
    settings = options.build_settings(args)
    destination = location(args.destination)
    part = chosen_part(args.part, finish=args.finish, engine=args.engine != "local", overwrite=args.overwrite)
    if part is not None:
        return _run_part(args, settings, destination, part)
    report = build_files(
        settings,
        destination,
        output.shown_progress,
        engine=options.chosen_engine(args),
        announce=announcer(args, settings),
        overwrite=overwriter(args),
    )
    return report_build(report, args)


def _run_part(args: argparse.Namespace, settings: BuildSettings, destination: Location, part: Part) -> int:
    report = build_part_of_files(settings, destination, part, output.shown_progress, announce=announcer(args, settings))
    if report.dataset is not None:
        if not args.json and not args.finish:
            output.detail(_shards_of(report))
        return report_build(report.dataset, args, None if args.finish else report)
    if args.json:
        document = {"outcome": "part", "destination": args.destination, **_part_fields(report)}
        output.document(document | _common_fields(report))
        return 0
    output.some([f"warning: {warning}" for warning in report.warnings], _SHOWN, "see 'stoker plan'")
    _print_rejects(report, "rejects.jsonl will name all of them")
    missing = f"{format_count(report.missing_shards, 'shard')} of other parts missing in {args.destination}"
    output.line(f"{_shards_of(report)}; {missing}")
    return 0


def _ask_settings(args: argparse.Namespace) -> None:
    """Ask for the settings that the command line lacks, as NVIDIA's ``generate_tfrecord_protos.sh`` does.

    A question is not asked if its environment variable is set. Unlike in that script, the answer about resizing has an
    effect, and Enter accepts the default, which is yes.
    """
    args.source = args.source or _answer("DATA_DIR", "IMAGENET_DATA_DIR", question="ImageNet data dir")
    args.destination = args.destination or _answer("PROTO_OUT_DIR", question="TFRecord output dir")
    args.preset = args.preset or "imagenet-nvidia"
    if args.resize is not None or args.recipe == "keep" or args.img_size is not None:
        return
    answer = _answer("RESIZE_IMAGES", question="Resize images to one size", default="Y")
    if answer.lower() in ("n", "no", "false", "0"):
        args.resize = "off"
        return
    if answer.lower() not in ("y", "yes", "true", "1"):
        raise ConfigError(f"{answer!r} is neither yes nor no; answer RESIZE_IMAGES with Y or n")
    height = _number("NEW_HEIGHT", "Height of the images", _SIDE)
    width = _number("NEW_WIDTH", "Width of the images", _SIDE)
    args.resize = f"exact:{width}x{height}"
    if args.encode is None and args.quality is None:
        args.quality = _number("JPEG_Q", "JPEG quality, 1 to 100", _QUALITY)


def _answer(*variables: str, question: str, default: str | None = None) -> str:
    for variable in variables:
        if value := os.environ.get(variable):
            return value
    if not sys.stdin.isatty():
        message = f"--ask cannot ask for {question!r}: standard input is not a terminal"
        raise ConfigError(f"{message}; set the environment variable {variables[0]}, or give it on the command line")
    while True:
        answer = output.typed(f"{question}{f' [{default}]' if default else ''}: ")
        if answer is None:
            message = f"{question!r} was not answered"
            raise ConfigError(f"{message}; set the environment variable {variables[0]}, or give it on the command line")
        if chosen := answer or default:
            return chosen


def _number(variable: str, question: str, default: int) -> int:
    answer = _answer(variable, question=question, default=str(default))
    if not answer.isascii() or not answer.isdigit() or len(answer) > _MAX_DIGITS:
        raise ConfigError(f"{variable} is {answer[:40]!r}; it must be a whole number")
    return int(answer)


def announcer(args: argparse.Namespace, settings: BuildSettings) -> Callable[[ExpectedSize], None] | None:
    """Return a function that prints how large the dataset will be; None with ``--json``."""
    if args.json:
        return None

    def announce(expected: ExpectedSize) -> None:
        size, free = format_size(expected.size_bytes), expected.free_bytes
        where = f"to {args.destination}" if free is None else f"{format_size(free)} free at {args.destination}"
        output.detail(f"{format_count(expected.records, 'record')}, about {size}; {where}")
        output.detail(f"shards: {expected.shard_rule}")
        if output.is_verbose():
            line = f"recipe {settings.recipe}, preset {args.preset or 'none'}, labels from {settings.schema.label_base}"
            output.line(f"{line}, seed {settings.options.seed}, {format_count(settings.threads, 'thread')}")

    return announce


def overwriter(args: argparse.Namespace) -> Callable[[str], None] | None:
    """Return a function that asks before the dataset at the destination is removed; None without ``--overwrite``."""
    if not args.overwrite:
        return None

    def agree(contents: str) -> None:
        if args.yes:
            return
        if not sys.stdin.isatty():
            raise UsageError(f"--overwrite would remove the {contents} in {args.destination}; add --yes to allow it")
        answer = output.typed(f"remove the {contents} in {args.destination}? [y/N] ")
        if (answer or "").lower() not in ("y", "yes"):
            message = f"{args.destination} was left as it is; build into another directory, or answer y"
            raise DestinationError(message, path=args.destination)

    return agree


def report_build(report: BuildReport, args: argparse.Namespace, part: PartReport | None = None) -> int:
    """Print what a build did, or the part of it that ended last, and return its exit code."""
    if args.json:
        output.document(_document(report, args.destination) | ({} if part is None else _part_fields(part)))
    else:
        _print(report, args.destination)
    return output.EXIT_REJECTS if report.outcome == "withheld" else 0


def _document(report: BuildReport, destination: str) -> dict[str, Any]:
    manifest = report.manifest
    return {
        "outcome": report.outcome,
        "destination": destination,
        "dataset_id": manifest.dataset_id,
        "classes": manifest.classes,
        "label_base": manifest.schema.label_base,
        "splits": {
            name: {"records": s.records, "bytes": s.size_bytes, "shards": len(s.shards), "rejects": s.rejects}
            for name, s in manifest.splits.items()
        },
        **_common_fields(report),
        "images_per_second": round(report.items / report.seconds, 1),
        "bytes_per_second": round(report.size_bytes / report.seconds),
        "formats": manifest.formats,
        "converted": manifest.converted,
        "annotation_errors": manifest.annotation_errors,
        "ignored": manifest.source.ignored,
    }


def _common_fields(report: BuildReport | PartReport) -> dict[str, Any]:
    return {
        "seconds": round(report.seconds, 3),
        "images": report.items,
        "source_bytes": report.size_bytes,
        "resumed_shards": report.resumed_shards,
        "annotation_errors": len(report.annotation_errors),
        "rejects": report.rejects,
        "warnings": report.warnings,
    }


def _part_fields(report: PartReport) -> dict[str, Any]:
    return {
        "part": report.part.number,
        "parts": report.part.count,
        "part_shards": report.shards,
        "all_shards": report.all_shards,
        "missing_shards": report.missing_shards,
    }


def _shards_of(report: PartReport) -> str:
    resumed = f", {report.resumed_shards:,} of them there already" if report.resumed_shards else ""
    return f"{report.part}: {report.shards:,} of {format_count(report.all_shards, 'shard')}{resumed}"


def _print(report: BuildReport, destination: str) -> None:
    manifest = report.manifest
    if report.outcome == "complete":
        output.line(f"{destination} is already complete: dataset {manifest.dataset_id}; nothing was touched")
        return
    output.some([f"warning: {warning}" for warning in report.warnings], _SHOWN, "see 'stoker plan'")
    if not output.is_quiet():
        _print_splits(report)
    _print_rejects(report, f"see {destination}/rejects.jsonl")
    if report.outcome == "withheld":
        accept = f"run the same command with --max-rejects {manifest.rejects} to accept them"
        accept = "no image could be stored" if manifest.records == 0 else accept
        output.line(f"manifest withheld because of {format_count(manifest.rejects, 'reject')}; {accept}")
    else:
        output.line(f"dataset {manifest.dataset_id} in {destination}")


def _print_rejects(report: BuildReport | PartReport, rest: str) -> None:
    annotations = [f"annotation of {error}" for error in report.annotation_errors]
    output.some(annotations, _SHOWN, "their images are stored without boxes")
    output.some([f"rejected {reject.key}: {reject.reason}" for reject in report.rejects], _SHOWN, rest)
    if len(report.rejects) > _SHOWN and not output.is_quiet():
        output.table([">rejects", "reason"], output.reasons(report.rejects))


def _print_splits(report: BuildReport) -> None:
    manifest = report.manifest
    rows = [
        (name, s.records, len(s.shards), format_size(s.size_bytes), s.rejects) for name, s in manifest.splits.items()
    ]
    output.table(["split", ">records", ">shards", ">bytes", ">rejects"], rows)
    output.line(", ".join(filter(None, [format_count(manifest.classes, "class"), manifest.schema.label_note])))
    rate = f"{report.items / report.seconds:,.0f} images/s, {format_size(report.size_bytes / report.seconds)}/s"
    there = report.resumed_shards
    resumed = f"; {format_count(there, 'shard')} {'was' if there == 1 else 'were'} there already" if there else ""
    output.line(f"{format_count(report.items, 'image')} in {format_seconds(report.seconds)}: {rate}{resumed}")
    if manifest.formats.keys() - {"jpeg", "raw"} or manifest.recipe["kind"] == "restart":
        output.line(f"stored: {output.formats_line(manifest)}")
    output.facts(output.converted(manifest))

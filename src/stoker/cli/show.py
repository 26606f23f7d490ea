"""``stoker show``: draw a contact sheet of random samples, or what the model sees of them."""

from __future__ import annotations

import ast
import dataclasses
import re
from typing import TYPE_CHECKING, Any, get_args

from stoker.cli import options, output
from stoker.cli.parser import UsageError
from stoker.config import check_range, format_count
from stoker.errors import ConfigError
from stoker.habits import did_you_mean
from stoker.inspect import SheetSpec, SheetTransform, write_sheet
from stoker.transforms import OPERATIONS, CenterCrop, ColorJitter, ObjectCrops, RandomResizedCrop
from stoker.types import Exif, Mode

if TYPE_CHECKING:
    import argparse

NAMED_TRANSFORMS: dict[str, SheetTransform] = {
    "train": RandomResizedCrop(224, hflip=0.5),
    "eval": CenterCrop(224, resize=256),
    "jitter": RandomResizedCrop(224, hflip=0.5, color_jitter=ColorJitter(0.4, 0.4, 0.4, 0.1)),
    "objects": ObjectCrops(224),
}
"""Transforms that ``--transforms`` knows by a name."""

_EPOCHS = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)
_MAX_TEXT = 2000
_MAX_EPOCHS = 30
_SHOWN = 5

DESCRIPTION = "Draw random samples with their labels and boxes, or what the model sees of them, as one PNG."
EXAMPLES = (
    "stoker show dataset --out sheet.png",
    "stoker show dataset --out seen.png --transforms train,eval --epochs 0-3",
    "stoker show dataset --out seen.png --transforms 'RandomResizedCrop(96),eval'",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = "dataset, directory, pattern or file of TFRecords, or images; or its URL"
    parser.add_argument("dataset", help=text)
    add = parser.add_argument_group("the picture").add_argument
    add("--out", required=True, metavar="FILE.png", help="the picture to write (required)")
    add("--per-row", type=int, metavar="N", help="samples in a row (default 6); not with --transforms")
    add("--no-boxes", dest="draw_boxes", action="store_false", help="do not draw annotated boxes")
    add = parser.add_argument_group("which samples").add_argument
    add("--split", metavar="NAME", help="split to show (default: the only one, or train)")
    add("--count", type=int, metavar="N", help="samples (default 24, with --transforms 6)")
    text = "decides which samples; with --transforms also the seed of the loader (default %(default)s)"
    add("--seed", type=int, default=17, metavar="N", help=text)
    names = ", ".join(NAMED_TRANSFORMS)
    text = f"show what a loader gives: {names}, or transforms of Stoker as Python writes them"
    add("--transforms", metavar="LIST", help=text)
    add("--epochs", metavar="LIST", help="with --transforms: in these epochs, such as 0-3 (default) or 0,5,89")
    text = "channels and depth, as stoker.open takes them: RGB (default), L, RGBA or I;16"
    add("--mode", choices=get_args(Mode), metavar="NAME", default="RGB", help=text)
    text = "EXIF orientation: keep it as stored (default), or apply it, as stoker.open takes it"
    add("--exif", choices=get_args(Exif), metavar="HOW", help=text)
    options.add_opening(parser)


def run(args: argparse.Namespace) -> int:
    """Write the sheet, print its path, and return 0."""
    spec = SheetSpec(
        split=args.split,
        count=args.count,
        seed=args.seed,
        boxes=args.draw_boxes,
        per_row=args.per_row,
        transforms=() if args.transforms is None else parse_transforms(args.transforms),
        epochs=None if args.epochs is None else parse_epochs(args.epochs),
        keys=options.record_keys(args),
        source=options.source_options(args),
        mode=args.mode,
        exif=args.exif,
    )
    output.check_writable("--out", args.out)
    report = write_sheet(args.dataset, args.out, spec)
    if args.json:
        output.document(dataclasses.asdict(report))
        return 0
    lines = [f"damaged: sample {key}: {problem}" for key, problem in report.damaged.items()]
    output.some(lines, _SHOWN, "find all damage with 'stoker verify'")
    samples = format_count(len(report.indices), "sample")
    formats = f" ({output.counted(report.formats)})" if report.formats else ""
    output.line(f"{report.path}: {samples} of {report.split}{formats}, {report.width} x {report.height} pixels")
    return 0


def parse_transforms(text: str) -> tuple[SheetTransform, ...]:
    """Return the transforms of ``train,eval`` or ``RandomResizedCrop(96, hflip=0.5),eval``; the text is only parsed."""
    try:
        if len(text) > _MAX_TEXT:
            raise ValueError(f"it is longer than {_MAX_TEXT} characters")
        tree = ast.parse(f"({text},)", mode="eval").body
        if not isinstance(tree, ast.Tuple):
            raise ValueError("it is not a list of transforms")
        return tuple(_transform(node) for node in tree.elts)
    except ConfigError:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        detail = "it is not written as Python" if isinstance(error, SyntaxError) else str(error)
        known = f"{', '.join(NAMED_TRANSFORMS)}, or for example 'RandomResizedCrop(96, hflip=0.5),eval'"
        give = " Give" if detail.endswith("?") else "; give"
        raise UsageError(f"--transforms is {text[:200]!r}: {detail}{give} {known}") from error


def _transform(node: ast.expr) -> SheetTransform:
    if isinstance(node, ast.Name) and node.id in NAMED_TRANSFORMS:
        return NAMED_TRANSFORMS[node.id]
    transform = _value(node)
    if not isinstance(transform, SheetTransform):
        raise ValueError(f"{ast.unparse(node)[:60]} is not a transform")
    return transform


def _value(node: ast.expr) -> Any:
    if not isinstance(node, ast.Call | ast.Name):
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError):
            raise ValueError(f"{ast.unparse(node)[:60]} is not a number or a text") from None
    called = node.func if isinstance(node, ast.Call) else node
    name = ast.unparse(called)[:60]
    if not isinstance(called, ast.Name) or name not in OPERATIONS:
        raise ValueError(f"there is no transform {name!r}{did_you_mean(name, [*NAMED_TRANSFORMS, *OPERATIONS])}")
    kind: Any = OPERATIONS[name]
    takes = f"{name} takes {', '.join(field.name for field in dataclasses.fields(kind))}"
    if not isinstance(node, ast.Call) or any(word.arg is None for word in node.keywords):
        raise ValueError(takes)
    words = {str(word.arg): _value(word.value) for word in node.keywords}
    try:
        return kind(*map(_value, node.args), **words)
    except TypeError:  # an unknown or missing setting, or one of the wrong type
        raise ValueError(takes) from None


def parse_epochs(text: str) -> tuple[int, ...]:
    """Return the epochs of a text such as ``0-3`` or ``0,5,89``."""
    epochs: list[int] = []
    for part in text.split(","):
        match = _EPOCHS.fullmatch(part.strip())
        if match is None:
            raise UsageError(f"--epochs is {text[:200]!r}; give for example 0-3, or 0,5,89")
        first, last = int(match[1]), int(match[2] or match[1])
        check_range("--epochs (how many)", len(epochs) + last - first + 1, len(epochs) + 1, _MAX_EPOCHS)
        epochs += range(first, last + 1)
    return tuple(epochs)

"""``stoker audit``: find duplicates, statistics and odd images, before anything is trained on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stoker.cli import options, output
from stoker.config import format_count, format_size
from stoker.inspect import DEFAULT_DISTANCE, MAX_DISTANCE, audit_splits
from stoker.loader import open_splits
from stoker.sources import SOURCE_KINDS
from stoker.storage import location

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from stoker.inspect import AuditedImage, AuditReport, DuplicateGroup

_SHOWN, _NAMED = 3, 5

DESCRIPTION = (
    "Measure every image: duplicates within and between splits, mean and deviation, dark, flat and odd images."
)
EXAMPLES = ("stoker audit photos", "stoker audit photos --json > audit.json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", help=f"{SOURCE_KINDS}, dataset or TFRecords; or its URL")
    add = parser.add_argument_group("what is looked for").add_argument
    text = f"bits of 64 in which near duplicates may differ, 0 to {MAX_DISTANCE} (default {DEFAULT_DISTANCE})"
    add("--distance", type=int, metavar="N", default=DEFAULT_DISTANCE, help=text)
    add = parser.add_argument_group("how it runs").add_argument
    add("--threads", type=int, metavar="N", help="images at a time (default: one per CPU)")
    add("--resume", metavar="FILE", help="keep measures in a file, and go on from there when run again")
    add("--html", metavar="FILE", help="write a page with the images of each finding, too (needs stoker[report])")
    options.add_opening(parser)


def run(args: argparse.Namespace) -> int:
    """Audit, print, and return 0, or 4 if an image cannot be read."""
    page = None if args.html is None else output.page_module(args.html)
    resume = None if args.resume is None else Path(args.resume)
    splits = open_splits(args.dataset, options.record_keys(args), options.source_options(args))
    with output.shown_progress("measuring", bad="unreadable") as progress:
        report = audit_splits(args.dataset, splits, args.distance, args.threads, resume, progress)
    if page is not None:
        location(args.html).write_atomically(page.audit_page(report, splits).encode())
    if args.json:
        classes = output.classes_of(report.classes)
        output.document(output.fields_of(report) | {"images": report.images, "classes": classes})
    else:
        _print(report)
        if args.html is not None:
            output.line(f"{args.html}: a page with the images of each finding")
    return output.EXIT_DAMAGED if "unreadable" in report.findings else 0


def _print(report: AuditReport) -> None:
    size = sum(split.size_bytes for split in report.splits.values())
    classes = format_count(len(report.classes), "class")
    output.line(f"{report.path}: {format_count(report.images, 'image')}, {format_size(size)}, {classes}")
    rows = [
        (name, s.images, format_size(s.size_bytes), s.unreadable, _numbers(s.mean), _numbers(s.std))
        for name, s in report.splits.items()
    ]
    output.table(["split", ">images", ">bytes", ">unreadable", "mean", "std"], rows)
    train = report.splits.get("train") or next(iter(report.splits.values()))
    figures = f'stoker.Output("float32", mean={_numbers(train.mean)}, std={_numbers(train.std)})'
    is_read = train.unreadable < train.images
    output.line(f"normalise: {figures if is_read else 'no image could be read, so there are no figures'}")
    for name in ("format", "mode"):
        output.line(f"{name}: {output.counted(report.formats[name])}")
    for name in ("bits", "orientation"):
        if name != "orientation" or report.formats[name].keys() - {"1"}:
            parts = [f"{value} in {format_count(count, 'image')}" for value, count in report.formats[name].items()]
            output.line(f"{name}: {', '.join(parts)}")
    for name, (least, median, most) in report.sizes.items():
        output.line(f"{name}: {_shown(least)} to {_shown(most)}, median {_shown(median)}")
    ordered = sorted(report.classes, key=lambda entry: entry.total)
    if ordered and ordered[-1].total:
        few, many = ordered[0], ordered[-1]
        text = f"{few.total:,} ({few.name or few.label}) to {many.total:,} ({many.name or many.label})"
        output.line(f"images of a class: {text}")
    for how, what in (("bytes", "equal files"), ("pixels", "equal pixels"), ("near", "near duplicates")):
        _print_groups(what, [group for group in report.duplicates if group.how == how])
    for name, images in report.findings.items():
        output.line(f"{name}: {format_count(len(images), 'image')}")
        output.some([_line(image) for image in images], _SHOWN)
    for name, images in report.extremes.items():
        if images:
            output.detail(f"{name}: {_shown(images[0].value)}, {images[0].where}")
    resumed = f", {report.resumed:,} of them before" if report.resumed else ""
    rate = f"{(report.images - report.resumed) / report.seconds:,.0f} images/s"
    output.line(f"audited {format_count(report.images, 'image')}{resumed} in {report.seconds:.1f} s ({rate})")


def _numbers(values: Sequence[float]) -> str:
    return f"({', '.join(f'{value:.4f}' for value in values)})"


def _shown(value: float | None) -> str:
    """Return a measure as text: whole numbers in full, others with four digits."""
    return "" if value is None else f"{value:,.0f}" if value == round(value) else f"{value:,.4g}"


def _print_groups(what: str, groups: Sequence[DuplicateGroup]) -> None:
    if not groups:
        output.line(f"{what}: none")
        return
    extra = sum(len(group.images) - 1 for group in groups)
    leaks = sum(len(group.splits) > 1 for group in groups)
    mixed = sum(len(group.labels) > 1 for group in groups)
    output.line(
        f"{what}: {format_count(extra, 'image')} to spare in {format_count(len(groups), 'group')}"
        + f", {leaks:,} of these across splits" * bool(leaks)
        + f", {mixed:,} with several classes" * bool(mixed)
    )
    ordered = sorted(groups, key=lambda group: (-len(group.splits), -len(group.labels)))
    lines = []
    for group in ordered:
        images = "  =  ".join(image.where for image in group.images[:_NAMED])
        lines.append(f"  {images}" + f"  and {len(group.images) - _NAMED:,} more" * (len(group.images) > _NAMED))
    output.some(lines, _SHOWN)


def _line(image: AuditedImage) -> str:
    value = f" ({_shown(image.value)})" if image.value is not None else ""
    return f"  {image.where}{value}" + f": {image.problem}" * bool(image.problem)

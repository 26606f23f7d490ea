"""``stoker plan``: say what a build would do, without writing anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stoker.builder import LARGE_BYTES, forecast, open_source
from stoker.cli import options, output
from stoker.config import format_count, format_seconds, format_size
from stoker.sources import SOURCE_KINDS

if TYPE_CHECKING:
    import argparse

    from stoker.builder import BuildForecast
    from stoker.recipe import Recipe, Storing

_SHOWN = 10

DESCRIPTION = (
    "Say what a build would do: classes, counts, rejects, bytes, minutes. Writes nothing; exits like the build."
)
EXAMPLES = ("stoker plan photos", "stoker plan photos --resize short:256 --encode jpeg:90")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help=f"{SOURCE_KINDS}; or its URL")
    options.add_declared(parser, "which images", "source", "selection")
    options.add_dataset(parser)
    options.add_declared(parser, "how it runs", "running")


def run(args: argparse.Namespace) -> int:
    """Print the forecast and return 0, or 3 when a build would withhold the manifest."""
    settings = options.build_settings(args)
    with output.shown_progress("listing") as progress:
        source = open_source(settings, progress)
    with output.shown_progress("checking") as progress:
        report = forecast(source, settings, progress)
    if args.json:
        output.document(_document(report))
    else:
        _print(report)
    return output.EXIT_REJECTS if report.is_withheld else 0


def _document(report: BuildForecast) -> dict[str, Any]:
    source, survey, estimate = report.plan.source, report.survey, report.estimate
    return {
        "source": source.root,
        "recipe": report.settings.recipe.resolved(),
        "classes": [
            {"name": entry.name, "text": entry.text, "items": count}
            | ({"boxes": report.box_counts[label]} if report.box_counts else {})
            for label, (entry, count) in enumerate(zip(source.class_labels, report.class_counts, strict=True))
        ],
        "items": report.plan.items,
        "bytes": report.plan.size_bytes,
        "splits": {
            split.name: {"items": len(split.rows), "bytes": split.size_bytes, "shards": len(split.shard_names)}
            for split in report.plan.splits
        },
        "shard_rule": report.plan.shard_rule,
        "boxes": {name: boxes.where for name, boxes in source.boxes.items()},
        "files_looked_at": survey.looked_at,
        "formats": survey.formats,
        "stored": [output.fields_of(storing) | {"images": count} for storing, count in survey.storings.items()],
        "odd_files": survey.odd,
        "exif_orientation": {"images": survey.turned, "looked_at": survey.looked_at},
        "rejects": survey.rejects,
        "expected_rejects": report.rejects,
        "withheld": report.is_withheld,
        "duplicates": report.dropped,
        "ignored": source.ignored,
        "estimate": output.fields_of(estimate)
        | {"seconds": round(estimate.seconds, 1), "threads": report.settings.threads},
        "warnings": source.warnings,
    }


def _print(report: BuildForecast) -> None:
    source, survey, estimate = report.plan.source, report.survey, report.estimate
    items, size, counts = report.plan.items, format_size(report.plan.size_bytes), report.class_counts
    of = f" of {min(counts):,} to {max(counts):,}" if any(counts) else ""
    if any(counts) and min(counts) == max(counts):
        of = f" of {counts[0]:,}{' each' * (len(counts) > 1)}"
    if report.box_counts:
        of = f", {format_count(sum(report.box_counts), 'box')}"
    classes = format_count(len(source.classes), "class") if source.classes else "no classes"
    of_size = ", downloaded by the build" if source.latency == "web" else f", {size}"
    output.line(f"{source.root}: {classes}{of}, {format_count(items, 'item')}{of_size}")
    # The sizes of images by URL are not known.
    per_byte, per_item = estimate.size_bytes / max(1, report.plan.size_bytes), estimate.size_bytes / max(1, items)
    rows = [
        (
            s.name,
            len(s.rows),
            format_size(s.size_bytes),
            len(s.shard_names),
            format_size((s.size_bytes * per_byte or len(s.rows) * per_item) / len(s.shard_names)),
        )
        for s in report.plan.splits
    ]
    output.table(["split", ">items", ">bytes", ">shards", ">about a shard"], rows)
    output.line(f"shards: {report.plan.shard_rule}")
    whole = "" if survey.looked_at == report.items else f" (of {survey.looked_at:,} files looked at)"
    stored = {_stored(storing, report.settings.recipe): count for storing, count in survey.storings.items()}
    turned = f"{format_count(survey.turned, 'image')}{whole}; {_turning(report)}" if survey.turned else ""
    dropped = f"{format_count(report.dropped, 'item')} will be left out, and listed as rejects"
    output.facts(
        {
            "content": output.counted(survey.formats) + whole,
            "stored": output.counted(stored) + whole if stored else "",
            "EXIF orientation": turned,
            "duplicates": "" if report.settings.options.drop_duplicates is None else dropped,
            "ignored": output.counted(source.ignored),
            "fields": ", ".join(f"{name} ({field.summary})" for name, field in source.fields.items()),
        }
    )
    for line in output.boxes_lines(source.root, {name: boxes.where for name, boxes in source.boxes.items()}):
        output.line(line)
    rejected = {reject.key for reject in survey.rejects}
    odd = [f"odd file: {file.key} is {file.content}" for file in survey.odd if file.key not in rejected]
    output.some(odd, _SHOWN)
    output.some([f"rejected {reject.key}: {reject.reason}" for reject in survey.rejects], _SHOWN)
    annotations = [f"annotation of {error}" for error in estimate.annotation_errors]
    output.some(annotations, _SHOWN, "their images are stored without boxes")
    output.some([f"warning: {warning}" for warning in source.warnings], _SHOWN)
    cost = f"about {format_size(estimate.size_bytes)}, about {format_seconds(estimate.seconds)}"
    sample = f"from {format_count(estimate.sampled, 'item')} converted"
    threads = format_count(report.settings.threads, "thread")
    output.line(f"recipe {report.settings.recipe}: {cost} on {threads} ({sample})")
    if estimate.size_bytes > LARGE_BYTES and not report.settings.options.allow_huge:
        output.line(f"warning: that is more than {format_size(LARGE_BYTES)}, so the build needs --yes")
    output.line(_verdict(report))


def _turning(report: BuildForecast) -> str:
    if report.settings.recipe.exif == "keep":
        return "stored as it is, --exif apply turns the pixels"
    return f"applied{output.loss_of_turning({storing.source for storing in report.survey.storings})}"


def _stored(storing: Storing, recipe: Recipe) -> str:
    if storing.method == "kept":
        return f"{storing.source} {output.how_made(storing.format, storing.method, recipe.resolved()['kind'])}"
    return f"{storing.source} encoded" if storing.source == storing.format else f"{storing.source} to {storing.format}"


def _verdict(report: BuildForecast) -> str:
    rejected, looked_at, items = len(report.survey.rejects), report.survey.looked_at, report.items
    if looked_at < items:
        sample = f"from a sample of {looked_at:,}: {rejected:,}"
        checked = f"about {report.rejects:,} of {items:,} would be rejected ({sample})"
        accept = "the build says how many, for --max-rejects"
    else:
        checked = f"{rejected:,} of {items:,} will be rejected"
        accept = f"build with --max-rejects {report.rejects} to accept them"
        accept = "no image can be stored" if rejected == items else accept
    return f"{checked}; the manifest would be withheld: {accept}" if report.is_withheld else checked

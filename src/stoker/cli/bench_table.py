"""What ``stoker bench`` prints: a table in groups with bars, what was left out and why, or all of it as JSON."""

from __future__ import annotations

import dataclasses
import statistics
from typing import TYPE_CHECKING, Any

from stoker.cli.output import Printer, bar
from stoker.config import format_seconds, format_size
from stoker.measure import GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.measure import BenchReport, BenchRow

_BAR_WIDTH = 24
_HEADINGS = {
    "limit": "the limit",
    "ladder": "the ladder",
    "stoker": "Stoker",
    "rival": "rivals",
}
_SHOWN = 5


def document_of(report: BenchReport) -> dict[str, Any]:
    """Return everything as JSON can hold it; ``docs/bench.md`` describes each field."""
    document = dataclasses.asdict(report)
    document["page_cache"] = "cold" if report.task.cold else "warm"
    for row, made in zip(document["rows"], report.rows, strict=True):
        row["median_images_per_second"] = made.median
        row["median_files_per_second"] = made.median * _files_a_sample(report)
    return document


def print_report(report: BenchReport) -> None:
    """Print a report for a person."""
    printer = Printer()
    for line in _head(report):
        printer.line(line)
    columns = ["reader", ">cold images/s" if report.task.cold else ">images/s", ">lowest", ">highest"]
    if _counts_crops(report):
        columns[1] = columns[1].replace("images", "crops")
        columns.append(">files/s")
    printer.table([*columns, ">per CPU second", ">of the limit", ""], _rows(report))
    reasons: dict[str, list[str]] = {}
    for left in report.left_out:
        reasons.setdefault(left.reason, []).append(left.key)
    for reason, keys in reasons.items():
        printer.line(f"left out: {', '.join(keys)}: {reason}")
    printer.some([f"unreadable: {reason}" for reason in report.prepared.unreadable], _SHOWN, "--json lists all")


def _head(report: BenchReport) -> Iterator[str]:
    task, machine, prepared = report.task, report.machine, report.prepared
    crops = f", {prepared.samples} crops of them," if _counts_crops(report) else ""
    yield (
        f"{task.view} view of {prepared.images} of {report.images} images{crops} ({task.split}), "
        f"batch {task.batch_size}, {task.threads} threads, page cache {_cache(report)}, "
        f"{report.rounds} rounds of {report.seconds:g} s in turns"
    )
    yield (
        f"{machine.processor}, {machine.cpus} CPUs, {format_size(machine.memory_bytes)}, {machine.system}, "
        f"Python {machine.python}"
    )
    yield (
        f"prepared in {format_seconds(prepared.seconds)}: {format_size(prepared.encoded_bytes)} of JPEG, "
        f"{format_size(prepared.decoded_bytes)} decoded, {format_size(prepared.written_bytes)} written"
    )
    if prepared.converted:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(prepared.converted.items()))
        yield f"made JPEG files for all readers but stoker-own: {kinds}"
    if prepared.unreadable:
        yield f"{len(prepared.unreadable)} images cannot be read, and no reader is measured with them"
    if prepared.encoded_bytes < 4 * 2**20:
        yield "few images: they may stay in the processor's caches, which makes every figure better than it will be"


def _cache(report: BenchReport) -> str:
    if report.still_cached is None:
        return "warm"
    return f"cold (files dropped before each turn; at most {report.still_cached:.1%} of them left in memory)"


def _counts_crops(report: BenchReport) -> bool:
    return report.task.view == "objects"


def _files_a_sample(report: BenchReport) -> float:
    return report.prepared.images / report.prepared.samples if _counts_crops(report) else 1.0


def _rows(report: BenchReport) -> Iterator[tuple[str, ...]]:
    best = max((row.median for row in report.rows), default=1.0)
    for group in GROUPS:
        rows = [row for row in report.rows if row.group == group]
        if rows:
            yield (f"-- {_HEADINGS[group]}",)
        for row in rows:
            yield _cells(report, row, best)


def _cells(report: BenchReport, row: BenchRow, best: float) -> tuple[str, ...]:
    rates = row.images_per_second
    per_cpu = f"{statistics.median(row.images_per_cpu_second):.0f}" if row.images_per_cpu_second else "-"
    files = (f"{row.median * _files_a_sample(report):.0f}",) if _counts_crops(report) else ()
    of_limit = "-" if row.of_limit is None else f"{row.of_limit:.2f}"
    return (
        row.name,
        f"{row.median:.0f}",
        f"{min(rates):.0f}",
        f"{max(rates):.0f}",
        *files,
        per_cpu,
        of_limit,
        bar(row.median / best, _BAR_WIDTH),
    )

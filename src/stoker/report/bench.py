"""The page and the picture of a benchmark."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from stoker.config import format_size
from stoker.inspect.page import COLORS, drawable, png, render, style, svg
from stoker.records.files import write_atomically
from stoker.report.bench_chart import GROUP_NAMES, bench_chart, counted
from stoker.storage import location

if TYPE_CHECKING:
    import os

    from stoker.measure import BenchReport, BenchRow, Group

_ABOVE, _BELOW, _ASIDE = 104.0, 48.0, 28.0  # pixels of the picture around the chart


def bench_page(report: BenchReport) -> str:
    """Return a self-contained page about a benchmark: one file, readable without network or JavaScript.

    Args:
        report: What was measured.
    """
    with style():
        chart = svg(bench_chart(report, above=24), "bench", f"{counted(report)} per second of each way to read them")
    per_cpu = {
        row.key: statistics.median(row.images_per_cpu_second) for row in report.rows if row.images_per_cpu_second
    }
    return render(
        "bench.html",
        report=report,
        counted=counted(report),
        name=_name(report),
        chart=chart,
        groups=[(GROUP_NAMES[group], rows) for group, rows in _grouped(report)],
        per_cpu=per_cpu,
        settings=_settings(report),
        machine=_machine(report),
        missing=[left for left in report.left_out if not left.failed],
        failed=[left for left in report.left_out if left.failed],
    )


def bench_picture(report: BenchReport, path: str | os.PathLike[str]) -> None:
    """Write the chart of a benchmark as a PNG, atomically.

    Args:
        report: What was measured.
        path: The file to write.

    Raises:
        OSError: It cannot be written.
    """
    task = report.task
    cache = "cold" if task.cold else "warm"
    settings = f"{task.view} view, batch {task.batch_size}, {task.threads} threads, page cache {cache}"
    machine = f"{', '.join(_machine_words(report))}.  Bars: medians of {report.rounds} rounds; dots: rounds."
    with style():
        figure = bench_chart(report, above=_ABOVE, below=_BELOW, aside=_ASIDE)
        width, height = (size * 72 for size in figure.get_size_inches())
        lines = [
            (38, drawable(f"Reading {_name(report)} / {task.split}"), 17, "ink"),
            (61, settings, 12, "dim"),
            (height - 22, machine, 11, "dim"),
        ]
        for top, text, size, color in lines:
            figure.text(_ASIDE / width, 1 - top / height, text, fontsize=size, color=COLORS[color], va="baseline")
        data = png(figure)
    write_atomically(location(path), data)


def _name(report: BenchReport) -> str:
    return report.task.dataset.rstrip("/").rpartition("/")[2] or report.task.dataset


def _grouped(report: BenchReport) -> list[tuple[Group, list[BenchRow]]]:
    groups: dict[Group, list[BenchRow]] = {}
    for row in report.rows:
        groups.setdefault(row.group, []).append(row)
    return list(groups.items())


def _settings(report: BenchReport) -> list[tuple[str, str]]:
    task, prepared = report.task, report.prepared
    cache = "warm"
    if report.still_cached is not None:
        cache = f"cold: files dropped before each turn; at most {report.still_cached:.1%} of them left in memory"
    converted = ", ".join(f"{number:,} {kind}" for kind, number in sorted(prepared.converted.items()))
    rows = [
        ("Dataset", task.dataset),
        ("Split", f"{task.split}, {report.images:,} images"),
        ("Images read", _images_read(report)),
        ("Converted", converted),
        ("Unreadable", f"{len(prepared.unreadable):,} left out for all" if prepared.unreadable else ""),
        ("View", task.view),
        ("Batch", f"{task.batch_size:,} {counted(report)}"),
        ("Threads", str(task.threads)),
        ("Page cache", cache),
        ("Rounds", f"{report.rounds} of {report.seconds:g} s each, in turns"),
    ]
    return [(name, text) for name, text in rows if text]


def _images_read(report: BenchReport) -> str:
    prepared = report.prepared
    text = f"{prepared.images:,}"
    if prepared.encoded_bytes:
        text += f", {format_size(prepared.encoded_bytes)} as JPEG, {format_size(prepared.decoded_bytes)} as pixels"
    if prepared.samples != prepared.images:
        text += f"; {prepared.samples:,} crops"
    return text


def _machine_words(report: BenchReport) -> list[str]:
    machine = report.machine
    memory = [format_size(machine.memory_bytes)] if machine.memory_bytes else []
    return [machine.processor, f"{machine.cpus} CPU{'s' * (machine.cpus != 1)}", *memory, machine.system]


def _machine(report: BenchReport) -> list[tuple[str, str]]:
    machine = report.machine
    memory = format_size(machine.memory_bytes) if machine.memory_bytes else "not known"
    return [
        ("Processor", machine.processor),
        ("CPUs", str(machine.cpus)),
        ("Memory", memory),
        ("System", machine.system),
        ("Python", machine.python),
    ]

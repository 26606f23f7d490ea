"""``stoker bench``: images per second of several ways to read a dataset, in turns."""

from __future__ import annotations

import dataclasses
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

from stoker.cli.output import Printer, print_json
from stoker.config import format_seconds, format_size
from stoker.errors import ConfigError
from stoker.measure import BenchReport, BenchRow, BenchSpec, run_bench
from stoker.storage import is_remote

if TYPE_CHECKING:
    import argparse

_DEFAULT = BenchSpec(dataset="")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Add the command."""
    text = "images per second of Stoker, of the codec alone, and of other readers that are installed"
    parser = subparsers.add_parser("bench", help=text, description=text)
    parser.add_argument("dataset", help="directory of a dataset")
    parser.add_argument("--split", help="split to read (default: the only one, or train)")
    parser.add_argument("--view", choices=("train", "eval"), default="train", help="crop and resize (default: train)")
    parser.add_argument("--batch-size", type=int, default=_DEFAULT.batch_size, help="images per batch")
    parser.add_argument("--threads", type=int, help="threads or workers of each reader (default: one per CPU)")
    parser.add_argument("--seconds", type=float, default=_DEFAULT.seconds, help="time per reader and round")
    parser.add_argument("--rounds", type=int, default=_DEFAULT.rounds, help="turns each reader takes")
    text = "drop the shards from the page cache before each measurement: figures of the disk, not of memory"
    parser.add_argument("--cold", action="store_true", help=text)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


def run(args: argparse.Namespace) -> int:
    """Measure, print, and return 0.

    Raises:
        ConfigError: The dataset is in a store, whose speed is not that of a machine.
    """
    if is_remote(args.dataset):
        advice = "copy the dataset and measure that; 'stoker simulate' forecasts how fast it is fed from a bucket"
        raise ConfigError(f"stoker bench measures datasets of this machine, and {args.dataset} is in a store; {advice}")
    spec = BenchSpec(
        dataset=args.dataset,
        split=args.split,
        view=args.view,
        batch_size=args.batch_size,
        threads=args.threads,
        seconds=args.seconds,
        rounds=args.rounds,
        cold=args.cold,
    )
    report = run_bench(spec, _Turns())
    if args.json:
        print_json(_document(report))
    else:
        _print(report)
    return 0


class _Turns:
    """One line on standard error for every turn, with the time left."""

    def __init__(self) -> None:
        self._first: float | None = None  # time of the first turn; starting the readers comes before it

    def __call__(self, number: int, turns: int, name: str) -> None:
        now = time.monotonic()
        self._first = now if self._first is None else self._first
        elapsed = now - self._first
        left = f", {format_seconds(elapsed / number * (turns - number))} left" if number else ""
        sys.stderr.write(f"measuring: turn {number + 1} of {turns}{left}: {name}\n")
        sys.stderr.flush()


def _document(report: BenchReport) -> dict[str, Any]:
    document = dataclasses.asdict(report)
    document["page_cache"] = "cold" if report.task.cold else "warm"
    for row, made in zip(document["rows"], report.rows, strict=True):
        row["median_images_per_second"] = made.median
    return document


def _print(report: BenchReport) -> None:
    printer, task, machine = Printer(), report.task, report.machine
    printer.line(
        f"{task.view} view of {report.images} images ({task.split}), batch {task.batch_size}, {task.threads} threads, "
        f"page cache {_cache(report)}, {report.rounds} rounds of {report.seconds:g} s in turns"
    )
    printer.line(
        f"{machine.processor}, {machine.cpus} CPUs, {format_size(machine.memory_bytes)}, {machine.system}, "
        f"Python {machine.python}"
    )
    columns = [
        "reader",
        ">cold images/s" if task.cold else ">images/s",
        ">lowest",
        ">highest",
        ">per CPU second",
        ">of the limit",
    ]
    printer.table(columns, [_cells(row) for row in report.rows])
    again = [
        row.name for row in report.rows[1:] if task.cold and max(row.images_per_second) * report.seconds > report.images
    ]
    if again:
        names = ", ".join(again)
        printer.line(f"read more than once in a turn, and only the first time cold: {names}; take fewer --seconds")
    if report.left_out:
        printer.line(f"not installed: {', '.join(left.name for left in report.left_out)}")


def _cache(report: BenchReport) -> str:
    if report.still_cached is None:
        return "warm"
    return f"cold (shards dropped before each turn; at most {report.still_cached:.1%} of them left in memory)"


def _cells(row: BenchRow) -> tuple[str, ...]:
    per_cpu = f"{statistics.median(row.images_per_cpu_second):.0f}" if row.images_per_cpu_second else "-"
    rates = row.images_per_second
    return (row.name, f"{row.median:.0f}", f"{min(rates):.0f}", f"{max(rates):.0f}", per_cpu, f"{row.of_limit:.2f}")

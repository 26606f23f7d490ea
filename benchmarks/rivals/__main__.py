"""Stoker and its rivals in one paired run: ``python -m benchmarks.rivals PHOTOS``.

Prints the tables, and writes ``results.json`` (every raw number), ``results.md`` and ``results.svg``. Environments of
the rivals are made by ``python -m benchmarks.rivals.install``; what is not installed is left out, as the tables say.
A line that is done is kept in ``lines/``: with ``--resume`` a run that was stopped goes on behind it, as long as the
settings, the machine and what is installed are the same.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import signal
import sys
import time
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.rivals.catalogue import GROUPS, LINES, RIVALS, entries_before, lines_named, own_entries, rivals_named
from benchmarks.rivals.contest import Contest, Row, Settings, document
from benchmarks.rivals.environments import BEFORE, OURS, Environments, requirements, rivals
from benchmarks.rivals.plot import picture
from benchmarks.rivals.preparing import prepare
from benchmarks.rivals.sources import Amounts, SourceError, make_sources
from benchmarks.rivals.stoker.stored import BUILDS
from benchmarks.rivals.table import tables
from benchmarks.rivals.work import FORMATS
from stoker.config import available_cpus
from stoker.inspect.bench import describe_machine
from stoker.storage import location


def say(text: str) -> None:
    """Print how far it is."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path, help="folder of JPEGs, in folders of their classes or not")
    parser.add_argument("--build", type=Path, default=Path("build", "rivals"), help="environments and data (15 GB)")
    parser.add_argument("--out", type=Path, help="where the results go (default: the --build directory)")
    parser.add_argument("--lines", default=",".join(LINES), help=f"of {', '.join([*LINES, *GROUPS])} (default: all)")
    parser.add_argument("--only", help="rivals to measure, with commas; stoker is one of them (default: all)")
    parser.add_argument("--before", type=Path, help="src of another version of Stoker, compiled: it takes part, too")
    parser.add_argument("--resume", action="store_true", help="take lines that a stopped run has finished as they are")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each turn (default 4)")
    parser.add_argument("--threads", type=int, default=available_cpus(), help="of each (default: one per CPU)")
    for name, value in asdict(Amounts()).items():
        parser.add_argument(f"--{name}-count", type=int, default=value, help=f"default {value}")
    return parser.parse_args()


class Finished:
    """Lines that are done, each in a file of its own that says how it was measured.

    Args:
        folder: Of the files.
        how: What must be the same for a line to be taken from there.
        resume: Whether any is.
    """

    def __init__(self, folder: Path, how: dict[str, Any], *, resume: bool) -> None:
        self._folder, self._how, self._resume = folder, json.loads(json.dumps(how)), resume

    def path_of(self, line: str) -> Path:
        """Where a line is kept."""
        return self._folder / f"{line}.json"

    def read(self, line: str) -> list[Row] | None:
        """The rows of a line; None: it is to be measured."""
        if not self._resume or not self.path_of(line).exists():
            return None
        stored = json.loads(self.path_of(line).read_text(encoding="utf-8"))
        return [Row.from_json(row) for row in stored["rows"]] if stored["how"] == self._how else None

    def write(self, line: str, rows: list[Row]) -> None:
        """Keep a line, unless something failed in it."""
        if not any(row.failed for row in rows):
            self._folder.mkdir(parents=True, exist_ok=True)
            text = json.dumps({"how": self._how, "rows": [row.to_json() for row in rows]}, indent=1)
            location(self.path_of(line)).write_atomically(text.encode())


class Run:
    """One run: which rivals take part, and what came of it."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._environments = Environments(args.build.resolve(), args.before and args.before.resolve())
        self._lines = lines_named(args.lines)
        self._amounts = Amounts(*(getattr(args, f"{name}_count") for name in asdict(Amounts())))
        settings = Settings(args.rounds, args.seconds, args.threads, self._amounts)
        self._contest = Contest(self._environments, settings, say)
        named = rivals_named(args.only) if args.only else {OURS, *(entry.rival for entry in RIVALS)}
        takes_part = {entry.rival for entry in RIVALS if set(entry.lines) & set(self._lines)} | {OURS}
        self.absent = sorted(name for name in named & takes_part if not self._environments.is_installed(name))
        self._rivals = (named & takes_part - set(self.absent)) | ({BEFORE} if args.before else set())

    def notes(self) -> list[str]:
        """What was not measured, and why."""
        data, notes = self._environments.data(OURS), []
        if self.absent:
            notes.append(f"Not installed, so not measured: {', '.join(self.absent)}.")
        unbuilt = [name for name in BUILDS if OURS in self._rivals and not (data / name / "manifest.json").exists()]
        if unbuilt and not set(self._lines) <= set(FORMATS):
            notes.append(f"This version of Stoker does not build, so not measured: {', '.join(unbuilt)}.")
        return notes

    def measure(self, photos: Path, finished: Finished) -> dict[str, list[Row]]:
        """Make the data, and measure every line that is not finished."""
        make_sources(photos, self._environments.sources, self._amounts, self._lines)
        owner = {entry.rival: entry.data_of or entry.rival for entry in RIVALS}
        owner |= {OURS: OURS, BEFORE: BEFORE}
        read_folders = set(self._lines) <= set(FORMATS)
        why_not = {rival: "" if read_folders else self._prepare(owner[rival]) for rival in sorted(self._rivals)}
        own = own_entries(self._environments.data(OURS))
        entries = [*RIVALS, *own, *entries_before(own)]
        lines = {}
        for line in self._lines:
            if (rows := finished.read(line)) is not None:
                say(f"{line}: taken from {finished.path_of(line)}")
                lines[line] = rows
                continue
            on_it = [entry for entry in entries if line in entry.lines and entry.rival in self._rivals]
            failed = [Row(entry, failed=why_not[entry.rival]) for entry in on_it if why_not[entry.rival]]
            if on_it:
                lines[line] = self._contest.measure(line, [e for e in on_it if not why_not[e.rival]]) + failed
                finished.write(line, lines[line])
        return lines

    @cache  # noqa: B019 - a run lives as long as the program
    def _prepare(self, rival: str) -> str:
        if not self._environments.is_installed(rival):
            return f"its data are made by {rival}, which is not installed"
        return prepare(self._environments, rival, self._contest.work("train", rival), say)


def versions(absent: list[str]) -> dict[str, list[str]]:
    """What is installed of each rival."""
    pinned = {name: requirements(name).splitlines() for name in rivals() if name not in absent}
    return pinned | {OURS: [importlib.metadata.version("stoker")]}


def main() -> int:
    """Measure, print and write; 1 if an entry failed, or was asked for by name and is not installed."""
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))  # so that stopped readers are ended, too
    machine, out = describe_machine(), args.out or args.build
    settings = {key: value for key, value in vars(args).items() if not isinstance(value, Path)}
    try:
        run = Run(args)
        alike = {name: value for name, value in settings.items() if name not in ("lines", "resume")}
        how = {
            **alike,
            "photos": str(args.photos.resolve()),
            "before": str(args.before),
            **asdict(machine),
            "versions": versions(run.absent),
        }
        for rival in run.absent:
            say(f"{rival} is NOT INSTALLED and left out: python -m benchmarks.rivals.install {rival}")
        lines = run.measure(args.photos, Finished(out / "lines", how, resume=args.resume))
    except (ValueError, SourceError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    described = {
        "machine": asdict(machine),
        "settings": settings,
        "requirements": versions(run.absent),
        "absent": run.absent,
    }
    heading = f"{machine.processor}, {machine.cpus} CPUs, {machine.system}, {args.rounds} rounds of {args.seconds:g} s"
    text = f"{heading}, page cache warm.\n\n{tables(lines, run.notes())}"
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(document(lines, **described), encoding="utf-8")
    (out / "results.md").write_text(text, encoding="utf-8")
    (out / "results.svg").write_text(picture(lines), encoding="utf-8")
    print(text)
    failed = any(row.failed for rows in lines.values() for row in rows)
    return 1 if failed or (args.only and run.absent) else 0


if __name__ == "__main__":
    sys.exit(main())

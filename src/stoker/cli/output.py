"""Output of commands: tables for people, one JSON document for programs, progress, and checks of files to write."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stoker.cli.parser import UsageError
from stoker.errors import printable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from types import ModuleType
    from typing import TextIO

    from stoker.format import Manifest
    from stoker.inspect import ClassCount
    from stoker.types import Progress, Reject


_FIRST_WORD = re.compile(r"[a-z]+")
_WIDTH = 1000
"""Room for a line, in characters, so that no cell of a table is ever cut; a narrow terminal wraps lines itself."""


_REASONS = 10

_TONES = {
    "damage": "red",
    "damaged": "red",
    "failed": "red",
    "rejected": "red",
    "warning": "yellow",
    "odd": "yellow",
    "next": "green",
}
"""Colours of the first word of a line, on a terminal."""


def document(report: object) -> None:
    """Print one JSON document on standard output; dataclasses in it become their fields, and paths text."""
    sys.stdout.write(json.dumps(report, indent=1, default=_plain) + "\n")


def _plain(value: Any) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    return fields_of(value) if dataclasses.is_dataclass(value) else os.fspath(value)


def fields_of(report: Any) -> dict[str, Any]:
    """Return the fields of a dataclass for a JSON document, with ``size_bytes`` called ``bytes`` as in the manifest."""
    names = [field.name for field in dataclasses.fields(report)]
    return {"bytes" if name == "size_bytes" else name: getattr(report, name) for name in names}


def classes_of(counts: Iterable[ClassCount]) -> list[dict[str, Any]]:
    """Return how often classes occur, for a JSON document."""
    return [fields_of(entry) | {"total": entry.total} for entry in counts]


def bar(share: float, width: int) -> str:
    """Return a bar of ``share`` (0..1) of ``width`` characters, at least one where the share is not 0."""
    # A terminal that is not UTF-8 has no blocks.
    block = "█" if "utf" in (sys.stdout.encoding or "").lower() else "#"
    return block * math.ceil(share * width)


def set_verbosity(level: int) -> None:
    """Say how much is printed: -1 with ``--quiet``, 1 with ``--verbose``, otherwise 0."""
    _verbosity[0] = level


_verbosity = [0]


@contextmanager
def shown_log() -> Iterator[None]:
    """With ``--verbose``, print what Stoker logs while the ``with`` block runs, such as retries."""
    if not is_verbose():
        yield
        return
    import logging  # noqa: PLC0415 - takes time, and most commands do without

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            sys.stderr.write(printable(f"stoker: {record.getMessage()}") + "\n")

    log, handler = logging.getLogger("stoker"), Lines()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def is_quiet() -> bool:
    """Return whether only warnings, errors and the result are printed."""
    return _verbosity[0] < 0


def is_verbose() -> bool:
    """Return whether everything is printed."""
    return _verbosity[0] > 0


def shown_progress(verb: str, what: str = "images", bad: str = "rejected") -> AbstractContextManager[Progress]:
    """Show the progress of a command while the ``with`` block runs; see `stoker.progress.shown_progress`."""
    from stoker import progress  # noqa: PLC0415 - takes time, and the help does without

    return progress.shown_progress(verb, what, bad, is_shown=not is_quiet())


def reasons(rejects: Sequence[Reject]) -> list[tuple[int, str]]:
    """Return reasons of rejects with their counts, the most frequent first; the last row sums up the rest."""
    counts = Counter(reject.reason for reject in rejects).most_common()
    shown, rest = counts[:_REASONS], counts[_REASONS:]
    others = [(sum(count for _, count in rest), f"{len(rest):,} other reasons")] if rest else []
    return [*((count, reason) for reason, count in shown), *others]


def converted(manifest: Manifest) -> dict[str, str]:
    """Return a fact about images that a build could not keep: how it stored them, and how many of each format."""
    title = "converted to JPEG" if manifest.formats.keys() <= {"jpeg"} else "converted"
    if manifest.schema.image_encoding == "raw":
        title = "decoded from other kinds"
    return {title: counted(manifest.converted) + loss_of_turning(manifest.converted)} if manifest.converted else {}


def loss_of_turning(sources: Collection[str]) -> str:
    """Return a note if some JPEGs were encoded anew only because of their orientation; otherwise nothing."""
    return ", encoded anew with loss" if "turned jpeg" in sources else ""


def how_made(image_format: str, method: str, recipe_kind: str) -> str:
    """Return how images of a format were made; JPEGs that the recipe *restart* counts as kept are transcoded."""
    is_transcoded = (image_format, method, recipe_kind) == ("jpeg", "kept", "restart")
    return "transcoded without loss" if is_transcoded else method


def formats_line(manifest: Manifest) -> str:
    """Return how many images a dataset has of which format, and how they were made: ``7 jpeg kept, 2 png encoded``."""
    kind = str(manifest.recipe.get("kind"))
    pairs = [(name, method, count) for name, counts in manifest.formats.items() for method, count in counts.items()]
    return ", ".join(f"{count:,} {name} {how_made(name, method, kind)}" for name, method, count in pairs)


def boxes_lines(root: str, paths: Mapping[str, str]) -> list[str]:
    """Return where the annotations of splits lie, a line for each path; the root itself is not repeated."""
    lines = []
    for where in dict.fromkeys(paths.values()):
        splits = ", ".join(name for name, path in paths.items() if path == where)
        lines.append(f"boxes: {splits}" if where == root else f"boxes: {where} for {splits}")
    return lines


def counted(counts: Mapping[str, int]) -> str:
    """Return counts as a list, in their order: ``18 png, 12 webp``."""
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


@lru_cache(1)
def _console(file: TextIO) -> Console:
    return Console(file=file, width=_WIDTH, highlight=False, soft_wrap=True, emoji=False, markup=False)


def line(text: str) -> None:
    """Print one line; a first word such as ``damage`` is coloured."""
    shown = Text(printable(text))
    word = _FIRST_WORD.match(text)
    if word is not None and word[0] in _TONES:
        shown.stylize(_TONES[word[0]], 0, word.end())
    _console(sys.stdout).print(shown)


def facts(by_title: Mapping[str, str]) -> None:
    """Print a line with title and text for each fact; empty facts are left out."""
    for title, text in by_title.items():
        if text:
            line(f"{title}: {text}")


def detail(text: str) -> None:
    """Print one line that is not the result; nothing with ``--quiet``."""
    if not is_quiet():
        line(text)


def some(lines: Sequence[str], count: int = 20, rest: str = "--json lists them all") -> None:
    """Print the first lines, and how many more there are and where to see them; all of them with ``--verbose``."""
    for text in lines if is_verbose() else lines[:count]:
        line(text)
    if len(lines) > count and not is_verbose():
        line(f"... and {len(lines) - count} more; {rest}")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; columns whose heading starts with ``>`` are right-aligned, and integers have commas."""
    drawn = Table(box=None, pad_edge=False, header_style="cyan")
    for column in columns:
        right = column.startswith(">")
        drawn.add_column(column.removeprefix(">"), justify="right" if right else "left", no_wrap=True)
    for row in rows:
        drawn.add_row(*(f"{cell:,}" if isinstance(cell, int) else printable(str(cell)) for cell in row))
    console = _console(sys.stdout)
    with console.capture() as captured:
        console.print(drawn)
    for text in captured.get().splitlines():  # a left-aligned last column is padded, which a file should not have
        sys.stdout.write(text.rstrip() + "\n")


def error(text: str) -> None:
    """Print one line about what went wrong on standard error."""
    _print_problem("error", "bold red", text)


def warning(text: str) -> None:
    """Print one line about what may be wrong on standard error."""
    _print_problem("warning", "bold yellow", text)


def _print_problem(kind: str, style: str, text: str) -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False, markup=False)
    console.print(Text.assemble((f"stoker: {kind}:", style), " ", printable(text)))


def check_writable(option: str, path: str) -> None:
    """Refuse a file that cannot be written because its folder is missing, or because it is a folder itself."""
    from stoker.storage import location  # noqa: PLC0415 - takes time, and the help does without

    file = location(path)
    if file.is_local and not file.parent.is_dir():
        missing = f"there is no folder {str(file.parent)!r}; make it first"
        problem = f"{str(file.parent)!r} is a file, not a folder" if file.parent.lexists() else missing
        raise UsageError(f"{option} is {path!r}, and {problem}")
    if file.is_local and file.is_dir():
        raise UsageError(f"{option} is {path!r}, which is a folder; name a file")


def page_module(path: str) -> ModuleType:
    """Return the module that draws pages; fail before images are read if its extra is missing or ``path`` is wrong."""
    page = importlib.import_module("stoker.inspect.page")
    check_writable("--html", path)
    return page


# Asking the user at the terminal.


def typed(question: str) -> str | None:
    """Ask on standard error, as standard output may be JSON; return the line typed, None where input has ended."""
    sys.stderr.write(question)
    sys.stderr.flush()
    line = sys.stdin.readline()
    return line.strip() if line else None


# What the exit code of a command means.

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_REJECTS = 3
EXIT_DAMAGED = 4
EXIT_INTERRUPTED = 130

EXIT_CODES = {
    0: "done",
    EXIT_FAILED: "failed",
    EXIT_USAGE: "usage: an option, the source or the destination is wrong",
    EXIT_REJECTS: "finished, but with more rejects than --max-rejects",
    EXIT_DAMAGED: "verify or index found damage",
    EXIT_INTERRUPTED: "interrupted",
}

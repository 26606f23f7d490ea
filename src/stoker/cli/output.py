"""How results are printed: tables for a person, one JSON document for a program."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_WIDTH = 1000
"""Room for a line, in characters, so that no cell of a table is ever cut; a narrow terminal wraps lines itself."""


def print_json(document: object) -> None:
    """Print one JSON document on standard output."""
    sys.stdout.write(json.dumps(document, indent=1) + "\n")


def printable(text: str) -> str:
    """Return text that any terminal can show: what is not printable, such as a stray byte of a name, is escaped."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


class Printer:
    """Standard output for a person: colours only on a terminal, and not with ``NO_COLOR``; no line is cut."""

    def __init__(self) -> None:
        self._console = Console(width=_WIDTH, highlight=False, soft_wrap=True, emoji=False, markup=False)

    def line(self, text: str) -> None:
        """Print one line."""
        self._console.print(printable(text))

    def some(self, lines: Sequence[str], count: int, rest: str) -> None:
        """Print the first lines, and one that says how many more there are and where; all if they are few."""
        for line in lines[:count]:
            self.line(line)
        if len(lines) > count:
            self.line(f"... and {len(lines) - count} more; {rest}")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a table; columns whose head starts with ``>`` are set to the right."""
        made = Table(box=None, pad_edge=False, header_style="cyan")
        for column in columns:
            right = column.startswith(">")
            made.add_column(column.removeprefix(">"), justify="right" if right else "left", no_wrap=True)
        for row in rows:
            made.add_row(*(printable(str(cell)) for cell in row))
        self._console.print(made)

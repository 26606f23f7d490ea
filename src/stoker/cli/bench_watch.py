"""How far ``stoker bench`` is: one line on standard error for each step, with the time left."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from stoker.cli.progress import shown_progress
from stoker.config import format_seconds, format_size

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from stoker.measure.watching import Outlook
    from stoker.types import Progress

_LINE_SECONDS = 2.0


class WatchedBench:
    """Tells a person; on a terminal one line is written over the other, elsewhere there is one every two seconds."""

    def __init__(self) -> None:
        self._first: float | None = None  # time of the first turn; starting the readers comes before it
        self._shown = 0.0
        self._is_terminal = sys.stderr.isatty()

    def phase(self, verb: str) -> AbstractContextManager[Progress]:
        """Show the progress of a part of the preparation."""
        return shown_progress(verb)

    def begin(self, outlook: Outlook) -> None:
        """Say what was prepared, and how long the measurement takes."""
        prepared = outlook.prepared
        made = f"wrote {format_size(prepared.written_bytes)}" if prepared.written_bytes else "all was there"
        self._line(
            f"prepared {prepared.images} images in {format_seconds(prepared.seconds)}, {made}; "
            f"measuring {outlook.contenders} readers takes about {format_seconds(outlook.seconds)}"
        )

    def starting(self, number: int, total: int, name: str) -> None:
        """Say which reader warms up."""
        self._passing(f"starting: reader {number + 1} of {total}: {name}")

    def turn(self, number: int, total: int, name: str) -> None:
        """Say whose turn it is, and how long the rest takes."""
        now = time.monotonic()
        self._first = now if self._first is None else self._first
        left = f", {format_seconds((now - self._first) / number * (total - number))} left" if number else ""
        self._passing(f"measuring: turn {number + 1} of {total}{left}: {name}")

    def end(self) -> None:
        """Leave no passing line behind."""
        if self._is_terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _passing(self, text: str) -> None:
        if self._is_terminal:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
        elif time.monotonic() - self._shown > _LINE_SECONDS:
            self._shown = time.monotonic()
            self._line(text)

    def _line(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

"""How far a long job is, on standard error: a bar on a terminal, otherwise a line every two seconds at most."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from rich import progress
from rich.console import Console
from rich.progress import BarColumn, TextColumn

from stoker.config import format_seconds, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.types import Progress

_LINE_SECONDS = 2.0
_BAR_SECONDS = 0.1


@contextmanager
def shown_progress(verb: str, what: str = "images", bad: str = "rejected") -> Iterator[Progress]:
    """Show progress while the ``with`` block runs.

    Args:
        verb: What is done, for example ``building``.
        what: What is counted.
        bad: What those are that are counted apart.
    """
    if not sys.stderr.isatty():
        yield _Reporter(_Lines(verb), _LINE_SECONDS, (what, bad))
        return
    with _Bar(verb) as bar:
        yield _Reporter(bar, _BAR_SECONDS, (what, bad))


class _Display(Protocol):
    def show(self, done: int, total: int, detail: str) -> None: ...


class _Reporter:
    """Turns counts into a rate and a remaining time, and does not show them too often."""

    def __init__(self, display: _Display, interval_seconds: float, words: tuple[str, str]) -> None:
        self._display = display
        self._interval = interval_seconds
        self._what, self._bad = words
        self._started = self._shown = time.monotonic()
        self._first: int | None = None

    def __call__(self, *, done: int, total: int, size_bytes: int, rejects: int) -> None:
        now = time.monotonic()
        if self._first is None or done < self._first:  # also where the next phase counts from the start again
            self._first = done  # what an earlier run did tells nothing about the speed of this one
        if now - self._shown < self._interval and done < total:
            return
        self._shown = now
        self._display.show(done, total, self._detail(now - self._started, done, total, size_bytes, rejects))

    def _detail(self, elapsed: float, done: int, total: int, size_bytes: int, rejects: int) -> str:
        assert self._first is not None
        rate = (done - self._first) / elapsed
        parts = [f"{rate:,.0f} {self._what}/s" if rate >= 10 else f"{rate:.1f} {self._what}/s"] if rate else []
        if size_bytes:
            parts.append(f"{format_size(size_bytes / elapsed)}/s")
        if rate > 0 and done < total:
            parts.append(f"{format_seconds((total - done) / rate)} left")
        if rejects:
            parts.append(f"{rejects:,} {self._bad}")
        return ", ".join(parts)


class _Lines:
    def __init__(self, verb: str) -> None:
        self._verb = verb

    def show(self, done: int, total: int, detail: str) -> None:
        sys.stderr.write(f"{self._verb}: {done:,} of {total:,} ({100 * done // max(1, total)} %), {detail}\n")
        sys.stderr.flush()


class _Bar:
    """A bar that is on the screen from the first news on: a phase that takes no time leaves no trace."""

    def __init__(self, verb: str) -> None:
        bar = BarColumn(complete_style="cyan", finished_style="green", pulse_style="cyan")
        columns = (
            TextColumn(verb),
            bar,
            TextColumn("{task.fields[count]}"),
            TextColumn("{task.fields[detail]}", "dim"),
        )
        self._bar = progress.Progress(*columns, console=Console(stderr=True))
        self._task = self._bar.add_task(verb, total=None, count="", detail="")

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()

    def show(self, done: int, total: int, detail: str) -> None:
        if not self._bar.live.is_started:
            self._bar.start()
        count = f"{done:,}/{total:,}"
        self._bar.update(self._task, completed=done, total=total, count=count, detail=detail)

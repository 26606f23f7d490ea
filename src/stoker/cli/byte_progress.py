"""How far a download is, on standard error: a bar on a terminal, otherwise a line every few seconds at most."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Protocol

from rich import progress
from rich.console import Console
from rich.progress import BarColumn, TextColumn

from stoker.config import format_seconds, format_size
from stoker.errors import printable

if TYPE_CHECKING:
    from stoker.download import Stage

_LINE_SECONDS = 5.0
_BAR_SECONDS = 0.1
_RATE_SECONDS = 30.0  # the rate shown is that of about this time, so that it follows the network


class ByteProgress:
    """Shows how far each file is, and what happens on the way. Use it as a context; one thread.

    Attributes:
        notes: Everything that was told.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._display: _Display = _Bar() if sys.stderr.isatty() else _Lines()
        self._task = ("", "")
        self._shown = 0.0
        self._since = (0.0, 0.0)  # when, and how many bytes there were then

    def __enter__(self) -> ByteProgress:
        return self

    def __exit__(self, *exception: object) -> None:
        self.pause()

    def pause(self) -> None:
        """Leave the terminal to something else, such as a question, until there is something new to show."""
        self._display.stop()

    def told(self, text: str) -> None:
        """Show a sentence, and keep it."""
        self.notes.append(text)
        self._display.say(printable(text))

    def advanced(self, *, name: str, stage: Stage, done: int, total: int | None) -> None:
        """Show bytes; `stoker.download.watcher.Watcher` says what they mean."""
        now = time.monotonic()
        if self._task != (name, stage):
            self._task = (name, stage)
            self._since = (now, done)  # what an earlier run did tells nothing about the speed of this one
            self._shown = now
        if done < self._since[1]:
            self._since = (now, done)  # started again
        if now - self._shown < self._display.interval_seconds and done != total:
            return
        self._shown = now
        self._display.show(f"{stage} {name}", done, total, self._detail(now, done, total))
        since, before = self._since
        if now - since > _RATE_SECONDS:
            self._since = (now - _RATE_SECONDS / 2, done - (done - before) * _RATE_SECONDS / 2 / (now - since))

    def _detail(self, now: float, done: int, total: int | None) -> str:
        since, before = self._since
        rate = (done - before) / max(now - since, 1e-3)
        whole = f"{format_size(done)}" + ("" if total is None else f" of {format_size(total)}")
        left = "" if total is None or rate <= 0 or done >= total else f", {format_seconds((total - done) / rate)} left"
        return f"{whole}, {format_size(rate)}/s{left}"


class _Display(Protocol):
    interval_seconds: float

    def show(self, task: str, done: int, total: int | None, detail: str) -> None: ...

    def say(self, text: str) -> None: ...

    def stop(self) -> None: ...


class _Lines:
    interval_seconds = _LINE_SECONDS

    def show(self, task: str, done: int, total: int | None, detail: str) -> None:
        percent = f" ({100 * done // total} %)" if total else ""
        self.say(f"{task}{percent}: {detail}")

    def say(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def stop(self) -> None:
        """A line that is written needs no end."""


class _Bar:
    """One bar for each file and stage; it is there only while something moves."""

    interval_seconds = _BAR_SECONDS

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._bar: progress.Progress | None = None
        self._shown: tuple[str, progress.TaskID] = ("", progress.TaskID(0))

    def show(self, task: str, done: int, total: int | None, detail: str) -> None:
        if self._bar is None or self._shown[0] != task:
            self.stop()
            bar = BarColumn(complete_style="cyan", finished_style="green", pulse_style="cyan")
            columns = (TextColumn("{task.description}", markup=False), bar, TextColumn("{task.fields[detail]}", "dim"))
            self._bar = progress.Progress(*columns, console=self._console)
            self._shown = (task, self._bar.add_task(printable(task), total=total, detail=""))
            self._bar.start()
        self._bar.update(self._shown[1], completed=done, total=total, detail=detail)

    def say(self, text: str) -> None:
        self._console.print(text, soft_wrap=True)

    def stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

"""The progress of a long job on standard error: a bar on a terminal, otherwise a line every two seconds at most."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import progress
from rich.console import Console

from stoker.cli.output import is_quiet
from stoker.config import format_seconds, format_size
from stoker.errors import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stoker.types import Progress

_LINE_SECONDS = 2.0
_BAR_SECONDS = 0.1


@contextmanager
def shown_progress(verb: str, what: str = "images", bad: str = "rejected") -> Iterator[Progress]:
    """Show the progress of images, or the like, while the ``with`` block runs.

    Args:
        verb: What is done, for example ``building``.
        what: What is counted.
        bad: What those are that are counted apart.
    """
    with ProgressDisplay() as display:
        started = time.monotonic()

        def report(*, done: int, total: int, size_bytes: int, rejects: int) -> None:
            def detail(speed: float) -> list[str]:
                parts = [f"{speed:,.0f} {what}/s" if speed >= 10 else f"{speed:.1f} {what}/s"] if speed else []
                if size_bytes:
                    parts.append(f"{format_size(size_bytes / (time.monotonic() - started))}/s")
                return [*parts, f"{rejects:,} {bad}"] if rejects else parts

            display.show(verb, done, total, f"{done:,} of {total:,}", detail)

        yield report


class ProgressDisplay:
    """One bar for each task on a terminal, while it moves; elsewhere lines. Use it as a context; one thread.

    Nothing is shown with ``--quiet``.
    """

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._is_terminal = sys.stderr.isatty()
        self._name = ""
        self._bar: progress.Progress | None = None
        self._updated = self._printed = 0.0
        self._began = (0.0, 0)  # when the task was first shown, and how much of it was done then

    def __enter__(self) -> ProgressDisplay:
        return self

    def __exit__(self, *exception: object) -> None:
        self.pause()

    def pause(self) -> None:
        """Leave the terminal to something else, such as a question, until there is something new to show."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def say(self, text: str) -> None:
        """Print a line."""
        if is_quiet():
            return
        self._console.print(printable(text), soft_wrap=True)

    def show(self, name: str, done: int, total: int | None, count: str, detail: Callable[[float], list[str]]) -> None:
        """Show how much of a task is done.

        Args:
            name: The task; another name starts another bar. The first call may have what an earlier run did.
            done: How much is done; less than before when the task starts again.
            total: How much there is; None while that is not known.
            count: How much that is, in words.
            detail: Returns what else to say of it, given the speed that `rich` estimates; 0 while it cannot.
        """
        if is_quiet():
            return
        now = time.monotonic()
        if self._bar is None or name != self._name or done < self._bar.tasks[0].completed:
            self.pause()
            self._name, self._updated, self._printed, self._began = name, now, now, (now, done)
            style = progress.BarColumn(complete_style="cyan", finished_style="green", pulse_style="cyan")
            text = progress.TextColumn("{task.description}", markup=False)
            dim = progress.TextColumn("{task.fields[detail]}", "dim", markup=False)
            self._bar = progress.Progress(
                text, style, dim, console=self._console, get_time=time.monotonic, disable=not self._is_terminal
            )
            self._bar.add_task(printable(name), total=total, completed=done, detail="")
        if now - self._updated < _BAR_SECONDS and done != total:
            return
        self._updated = now
        task = self._bar.tasks[0]
        self._bar.update(task.id, completed=done, total=total)
        speed = task.speed or (done - self._began[1]) / max(now - self._began[0], 1e-3)
        more = detail(speed)
        if total is not None and speed > 0 and done < total:
            more.append(f"{format_seconds((total - done) / speed)} left")
        percent = f" ({100 * done // total} %)" if total else ""
        if self._is_terminal:
            self._bar.update(task.id, detail=", ".join([count, *more]))
            self._bar.start()
        elif now - self._printed >= _LINE_SECONDS or done == total:
            self._printed = now
            self.say(", ".join([f"{name}: {count}{percent}", *more]))

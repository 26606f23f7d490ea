"""The progress of a long job: a bar on a terminal or in a notebook, otherwise a line every two seconds at most."""

from __future__ import annotations

import html
import secrets
import sys
import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Literal

from rich import progress
from rich.console import Console

from stoker.config import format_seconds, format_size
from stoker.errors import ConfigError, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from stoker.types import Progress

_LINE_SECONDS = 2.0
_BAR_SECONDS = 0.1
_QUICK_SECONDS = 1.0  # a shorter call has no bar


@contextmanager
def shown_progress(verb: str, what: str = "images", bad: str = "rejected", **display: Any) -> Iterator[Progress]:
    """Show the progress of a job on images or other items while the ``with`` block runs; see `ProgressDisplay`.

    ``verb`` names the job, such as ``building``; ``bad`` describes the items that are counted as rejects.
    """
    with ProgressDisplay(**display) as shown:
        started = time.monotonic()

        def report(*, done: int, total: int, size_bytes: int, rejects: int) -> None:
            def detail(speed: float) -> list[str]:
                parts = [f"{speed:,.0f} {what}/s" if speed >= 10 else f"{speed:.1f} {what}/s"] if speed else []
                if size_bytes:
                    parts.append(f"{format_size(size_bytes / (time.monotonic() - started))}/s")
                return [*parts, f"{rejects:,} {bad}"] if rejects else parts

            count = f"{done:,} of {total:,}" if total else f"{done:,} {what}"
            shown.show(verb, done, total or None, count, detail)

        yield report


def progress_of_call(
    verb: str, given: Progress | Literal[False] | None, what: str = "images"
) -> AbstractContextManager[Progress | None]:
    """Return a context that shows the progress of a call as the user asks: None is a bar, False nothing."""
    if given is None:
        return shown_progress(verb, what, has_lines=False, delay_seconds=_QUICK_SECONDS)
    if given is not False and not callable(given):
        raise ConfigError(f"progress is {given!r}; give a function or False, or omit it")
    return nullcontext(given or None)


class Tally:
    """Counts the items of a long job, and shows its progress."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.items = self.size_bytes = 0  # items of this run, and their bytes
        self._total, self._progress = total, progress
        self._done = self._rejects = 0

    def advanced(self, items: int, size_bytes: int, rejects: int) -> None:
        """Count items of this run, and show how many there are so far."""
        self._done += items
        self._rejects += rejects
        self.items += items
        self.size_bytes += size_bytes
        if self._progress is not None:
            self._progress(done=self._done, total=self._total, size_bytes=self.size_bytes, rejects=self._rejects)


class ProgressDisplay:
    """A bar for each task on a terminal or in a notebook, while it moves; elsewhere lines. For one thread.

    Without ``has_lines`` nothing is shown elsewhere. A task shorter than ``delay_seconds`` has no bar.
    """

    def __init__(self, *, is_shown: bool = True, has_lines: bool = True, delay_seconds: float = 0) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False, force_jupyter=False)
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._notebook = None if self._is_terminal else _Notebook.of_this_process()
        self._has_lines = has_lines
        self._is_shown = is_shown and (has_lines or self._is_terminal or self._notebook is not None)
        self._delay_seconds = delay_seconds
        self._name = ""
        self._bar: progress.Progress | None = None
        self._updated = self._printed = 0.0
        self._began = (0.0, 0)  # when the task was first shown, and how much of it was done then

    def __enter__(self) -> ProgressDisplay:
        return self

    def __exit__(self, *exception: object) -> None:
        self.pause()

    def pause(self) -> None:
        """Free the terminal for other output, such as a question, until the next progress is shown."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def say(self, text: str) -> None:
        """Print a line."""
        if self._is_shown:
            self._console.print(printable(text), soft_wrap=True)

    def show(self, name: str, done: int, total: int | None, count: str, detail: Callable[[float], list[str]]) -> None:
        """Show how much of a task is done, of a total, which is None while it is not known.

        Another name, or a smaller ``done``, starts another bar; the first call may count what an earlier run did.
        ``count`` is ``done`` in words; ``detail`` returns further texts, given the speed that `rich` estimates, or 0
        before it can.
        """
        if not self._is_shown:
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
        is_late = now - self._began[0] >= self._delay_seconds
        if self._is_terminal:
            self._bar.update(task.id, detail=", ".join([count, *more]))
            if is_late:
                self._bar.start()
        elif self._notebook is not None:
            if is_late:
                self._notebook.show(name, done, total, ", ".join([count, *more]))
        elif now - self._printed >= _LINE_SECONDS or done == total:
            self._printed = now
            percent = f" ({100 * done // total} %)" if total else ""
            self.say(", ".join([f"{name}: {count}{percent}", *more]))


class _Notebook:
    """The output of the running cell, with a bar for each task. It needs only IPython, and no widgets."""

    def __init__(self, ipython: Any) -> None:
        self._display = ipython.display.display
        self._shown: dict[str, str] = {}

    @classmethod
    def of_this_process(cls) -> _Notebook | None:
        """Return the notebook whose kernel this process is; None for other processes."""
        ipython = sys.modules.get("IPython")
        shell = None if ipython is None else ipython.get_ipython()
        return None if getattr(shell, "kernel", None) is None else cls(ipython)

    def show(self, name: str, done: int, total: int | None, text: str) -> None:
        """Show a bar, in place of an earlier one of the same task."""
        line = printable(f"{name}: {text}")
        filled = "" if total is None else f" value='{done}' max='{total}'"
        page = f"<progress{filled}></progress> <code>{html.escape(line)}</code>"
        update = name in self._shown
        display_id = self._shown.setdefault(name, secrets.token_hex(8))
        self._display({"text/plain": line, "text/html": page}, raw=True, display_id=display_id, update=update)

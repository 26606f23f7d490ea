"""The progress of a command: lines or a bar on standard error, and nothing with ``--quiet``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker import progress
from stoker.cli.output import is_quiet

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from stoker.types import Progress


def shown_progress(verb: str, what: str = "images", bad: str = "rejected") -> AbstractContextManager[Progress]:
    """Show the progress of a command while the ``with`` block runs; see `stoker.progress.shown_progress`."""
    return progress.shown_progress(verb, what, bad, is_shown=not is_quiet())

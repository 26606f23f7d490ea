"""Data that a rival makes for itself, once in a folder that is kept."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from stoker.measure.selection import made_by

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stoker.measure.task import Task

_DONE = "done"


def made_once(task: Task, key: str, make: Callable[[Path], None]) -> Path:
    """Return the folder in which ``make`` has put what a rival reads; what was interrupted is made anew."""
    folder = made_by(key, task)
    if not (folder / _DONE).exists():
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "data").mkdir(parents=True)
        make(folder / "data")
        (folder / _DONE).touch()
    return folder / "data"

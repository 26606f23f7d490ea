"""Prepared images for the tests of the ladder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stoker.feed.opening import open_main_split
from stoker.measure.preparing import Wanted, prepare
from stoker.measure.task import Task
from stoker.measure.watching import Unwatched

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.measure.figures import Prepared

FORMS = frozenset({"files", "plain", "gzip", "raw", "restart"})


def made(source: Path, data: Path, most: int | None = None, **changes: Any) -> Prepared:
    """Prepare every form of some images."""
    wanted = Wanted(str(source), most, changes.pop("forms", FORMS), 2, caches_file=True)
    return prepare(open_main_split(source, None), wanted, data, Unwatched().phase)


def task_for(source: Path, data: Path, view: str = "eval", **changes: Any) -> Task:
    """A task on what was prepared, in small batches."""
    settings: dict[str, Any] = {"split": "train", "batch_size": 4, "threads": 2} | changes
    return Task(dataset=str(source), view=view, data=str(data), **settings)  # type: ignore[arg-type]

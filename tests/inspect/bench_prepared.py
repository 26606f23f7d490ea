"""Prepared images for the tests of the benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stoker.inspect.bench import BenchProgress, Task
from stoker.inspect.bench.images import prepare
from stoker.loader.opening import open_main_split

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.inspect.bench import Prepared

FORMS = frozenset({"files", "plain", "gzip", "raw", "restart"})


def made(source: Path, data: Path, most: int | None = None, **changes: Any) -> Prepared:
    """Prepare every form of some images."""
    data.mkdir(exist_ok=True)
    forms = changes.pop("forms", FORMS)
    dataset = open_main_split(source, None)
    return prepare(dataset, task_for(source, data), most, forms, BenchProgress().phase, caches_file=True)


def task_for(source: Path, data: Path, transform: str = "eval", **changes: Any) -> Task:
    """A task on what was prepared, in small batches."""
    settings: dict[str, Any] = {"split": "train", "batch_size": 4, "threads": 2} | changes
    return Task(dataset=str(source), transform=transform, data=str(data), **settings)  # type: ignore[arg-type]

"""Prepared images for the tests of the benchmark."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from stoker.inspect.bench import CASES, BenchSpec, prepare
from stoker.loader import open_main_split

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.inspect.bench import BenchImages, Case

FORMS = frozenset({"files", "plain", "raw", "restart"})


def prepared_images(source: Path, folder: Path, most: int | None = None, forms: frozenset[Any] = FORMS) -> BenchImages:
    """Prepare every form of some images."""
    folder.mkdir(exist_ok=True)
    spec = BenchSpec(str(source), images=most, threads=2)
    return prepare(open_main_split(source, None), spec, str(folder), forms, lambda *_: nullcontext(ignore))


def ignore(**_progress: int) -> None:
    """Show no progress."""


def spec_for(transform: Any = "eval", batch_size: int = 4) -> BenchSpec:
    """What is done with the prepared images, in small batches."""
    return BenchSpec("", transform=transform, batch_size=batch_size, threads=2)


def case_of(key: str) -> Case:
    """The case of a key."""
    return next(case for case in CASES if case.key == key)

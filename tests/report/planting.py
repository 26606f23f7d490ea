"""Trees of class folders with small pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reference import pictures

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def plant(root: Path, names: Sequence[str], images: int = 2) -> None:
    """Make a folder for each name, and that many pictures in each."""
    for number, name in enumerate(names):
        folder = root / name.replace("/", "-")
        folder.mkdir(parents=True)
        for place in range(images):
            (folder / f"{place}.jpg").write_bytes(pictures.jpeg(30 + number, 20 + place, number))

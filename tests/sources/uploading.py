"""Copies of trees in stores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.storage import RemotePath


def copied(source: Path, top: Path, there: RemotePath) -> str:
    """Everything below ``top`` is in the store, too; returns the URL of what is ``source`` here."""
    files = [path for path in top.rglob("*") if path.is_file()]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda path: (there / str(path.relative_to(top))).write_bytes(path.read_bytes()), files))
    return str(there / str(source.relative_to(top)) if source != top else there)

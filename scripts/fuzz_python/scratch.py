"""A folder in memory, where there is one, for parsers that read files; and what holds of the boxes of any source."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.storage import LocalLocation

if TYPE_CHECKING:
    from stoker.sources import Source

_MEMORY = Path("/dev/shm")


def folder() -> LocalLocation:
    """Return a new folder that is gone when the program ends."""
    scratch = LocalLocation(tempfile.mkdtemp(prefix="stoker-fuzz-", dir=_MEMORY if _MEMORY.is_dir() else None))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    return scratch


def check_boxes(tree: Source) -> None:
    """Check that all boxes lie in their images and have classes that there are; raise what damaged ones do."""
    for split, rows in tree.splits.items():
        for item in tree.table.take(rows):
            for box in tree.read_boxes(item, split):
                assert 0.0 <= box.xmin < box.xmax <= 1.0
                assert 0.0 <= box.ymin < box.ymax <= 1.0
                assert box.label in range(len(tree.classes))

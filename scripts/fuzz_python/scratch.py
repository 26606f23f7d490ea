"""A folder in memory, where there is one, for parsers that read files."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

from stoker.storage import LocalLocation

_MEMORY = Path("/dev/shm")


def folder() -> LocalLocation:
    """Return a new folder that is gone when the program ends."""
    scratch = LocalLocation(tempfile.mkdtemp(prefix="stoker-fuzz-", dir=_MEMORY if _MEMORY.is_dir() else None))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    return scratch

"""Writing small files so that a crash leaves the old content or the new, never half of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stoker.storage import RemotePath
from stoker.storage.temporary import temporary_name

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.storage import Location


def write_atomically(path: Location, data: bytes) -> None:
    """Write a file under a temporary name, bring it to the disk, and give it its name; or an object, which is whole.

    Raises:
        OSError: The disk is full, the store has gone, or the like; the temporary file is removed.
    """
    if isinstance(path, RemotePath):
        path.write_bytes(data)
        return
    temporary = path.with_name(temporary_name(path.name))
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Bring the names in a directory to the disk, so that a rename survives a power cut."""
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)

"""What lies in a destination: names and lengths, asked for one by one on a disk, and listed once in a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.records.index import new_index_name
from stoker.storage import RemotePath
from stoker.storage.temporary import TEMPORARY_MARK

if TYPE_CHECKING:
    from collections.abc import Callable

    from stoker.storage import Location
    from stoker.types import Compression


class Contents:
    """The files of a dataset.

    Args:
        destination: Its directory.

    Raises:
        OSError: It cannot be listed.
    """

    def __init__(self, destination: Location) -> None:
        self._size: Callable[[str], int | None]
        if isinstance(destination, RemotePath):
            below = len(f"{destination.key}/") if destination.key else 0
            entries = destination.store.entries(destination.key)
            self._size = {entry.key[below:]: entry.size_bytes for entry in entries}.get
        else:
            self._size = lambda name: _size_of(destination / name)

    def has_shard(self, name: str, size_bytes: int, compression: Compression) -> bool:
        """Return whether a shard is there in its full length, with an index if it must have one."""
        if self._size(name) != size_bytes:
            return False
        return compression != "none" or self._size(new_index_name(name)) is not None


def remove_temporaries(destination: Location) -> None:
    """Remove what dead builds left unfinished.

    On a disk only for the holder of the journal's lock. A store that another build is writing to at the same time does
    not mind: what that build misses it writes once more.

    Raises:
        OSError: It cannot be listed, or something in it cannot be removed.
    """
    if isinstance(destination, RemotePath):
        entries = destination.store.entries(destination.key)
        destination.store.delete_all([entry.key for entry in entries if TEMPORARY_MARK in entry.key])
        return
    for path in destination.rglob(f"*{TEMPORARY_MARK}*"):
        path.unlink(missing_ok=True)


def _size_of(path: Location) -> int | None:
    return path.stat().st_size if path.is_file() else None

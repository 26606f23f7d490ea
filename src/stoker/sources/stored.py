"""Folders of stores: the prefixes of keys, which are listed and never looked at one object at a time.

Some programs mark a folder with an empty object whose name is that of the folder and a slash. Clients show it without
the slash, as if it were an empty file: what is empty and has something below it is such a mark, and what is empty and
turns out not to be there under that name.
"""

from __future__ import annotations

import errno
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.errors import SourceError, StorageError
from stoker.sources.walk import Skipped, is_sidecar
from stoker.sources.where import object_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.storage import RemotePath


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """Something directly in a folder.

    Attributes:
        name: Its name.
        path: Its URL.
        folder: Whether it is a folder.
    """

    name: bytes
    path: bytes
    folder: bool


def scan_stored(where: bytes) -> list[StoredEntry]:
    """Return what lies directly in a folder, in the byte order of the names.

    Raises:
        SourceError: It cannot be listed.
        StorageError: The store is gone.
    """
    place = object_at(where)
    try:
        children = place.store.children(place.key)
    except StorageError:
        raise
    except OSError as error:
        raise _unlisted(place, error) from error
    keys = [(key, True) for key in children.folders] + [(entry.key, False) for entry in children.files]
    found = [(_encoded(key.rpartition("/")[2]), folder) for key, folder in keys]
    return [StoredEntry(name, where.rstrip(b"/") + b"/" + name, folder) for name, folder in sorted(found)]


def stored_below(where: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield (path below the folder, size in bytes) of every object at any depth, in any order, marks of folders too.

    Takes the memory of one page.

    Raises:
        SourceError: It cannot be listed.
        StorageError: The store is gone.
    """
    place = object_at(where)
    skip = len(place.key) + 1 if place.key else 0
    try:
        for entry in place.store.entries(place.key):
            yield _encoded(entry.key[skip:]), entry.size_bytes
    except StorageError:
        raise
    except OSError as error:
        raise _unlisted(place, error) from error


def stored_files(where: bytes, skipped: Skipped) -> list[tuple[bytes, int]]:
    """Return (path below the folder, size in bytes) of every item, in the byte order of the paths.

    Args:
        where: URL of the folder.
        skipped: Receives what is not an item, counted as in a folder of this machine.

    Raises:
        SourceError: It cannot be listed.
        StorageError: The store is gone.
    """
    found = []
    hidden: set[bytes] = set()
    for path, size in stored_below(where):
        top = _hidden_part(path)
        if top is not None:
            hidden.add(top)
        elif size and is_sidecar(path[path.rfind(b"/") + 1 :]):
            skipped.count_sidecar(path[path.rfind(b"/") + 1 :])
        else:
            found.append((path, size))
    if hidden:
        skipped.ignored["hidden"] += len(hidden)
    found.sort()
    return [entry for at, entry in enumerate(found) if entry[1] or not _skip_empty(where, found, at, skipped)]


def _skip_empty(where: bytes, found: list[tuple[bytes, int]], at: int, skipped: Skipped) -> bool:
    """Return whether an empty object is no item: the mark of a folder, or a sidecar, which is counted."""
    path = found[at][0]
    name = path[path.rfind(b"/") + 1 :]
    below = path + b"/"
    next_at = bisect_left(found, (below, 0), lo=at)
    if next_at < len(found) and found[next_at][0].startswith(below):
        return True
    place = object_at(where + b"/" + path)
    if not place.store.is_object(place.key):
        return True
    if not is_sidecar(name):
        return False
    skipped.count_sidecar(name)
    return True


def _hidden_part(path: bytes) -> bytes | None:
    """Return the path up to the first part that is hidden."""
    if path.startswith(b"."):
        return path.partition(b"/")[0]
    at = path.find(b"/.")
    if at < 0:
        return None
    end = path.find(b"/", at + 1)
    return path if end < 0 else path[:end]


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _unlisted(place: RemotePath, error: OSError) -> SourceError:
    """Return what is raised when a folder cannot be listed, and not because the store is gone."""
    if error.errno == errno.EINVAL:
        advice = "no client can read an object of such a name; rename or delete it"
        return SourceError(f"cannot list the folder {place}: {error.strerror}; {advice}", path=str(place))
    problem = error.strerror or str(error)
    return SourceError(f"cannot list the folder {place}: {problem}", path=str(place))

"""Folders of stores: the prefixes of keys, which are listed and never looked at one object at a time.

Some programs mark a folder with an empty object whose name is that of the folder and a slash. Clients show it without
the slash, as if it were an empty file; but there is nothing under that name.
"""

from __future__ import annotations

import errno
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


def stored_files_below(where: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield what `stored_below` does, but for the marks of folders.

    Raises:
        SourceError: It cannot be listed.
        StorageError: The store is gone.
    """
    empty = []
    for path, size in stored_below(where):
        if size:
            yield path, size
        else:
            empty.append(path)
    for path in empty:
        place = object_at(where + b"/" + path)
        if place.store.is_object(place.key):
            yield path, 0


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
    for path, size in stored_files_below(where):
        top = _hidden_part(path)
        if top is not None:
            hidden.add(top)
        elif is_sidecar(name := path[path.rfind(b"/") + 1 :]):
            skipped.count_sidecar(name)
        else:
            found.append((path, size))
    if hidden:
        skipped.ignored["hidden"] += len(hidden)
    found.sort()
    return found


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

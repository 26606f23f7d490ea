"""Folders of images and of annotations, on this machine or in a store."""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stoker.errors import SourceError, StorageError
from stoker.sources.reading import AT_ONCE, in_order, object_at
from stoker.storage import is_remote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.storage import RemotePath


# Walking one class folder: links, loops and odd directory entries.


SIDECARS = frozenset({b".xml", b".txt", b".csv", b".json", b".md", b".html", b".db", b".ini"})
"""Suffixes of files that lie beside images and are never images."""

_SHOWN = 5
_OF_THE_NAME = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.EINVAL}
)


@dataclass(slots=True)
class Skipped:
    """What was seen and is not an item.

    Attributes:
        ignored: How many, by suffix or by kind (``hidden``, ``special file``, ``link out of the tree``, ...).
        warnings: What a person should know, in the order it was found.
    """

    ignored: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)

    def warn(self, names: Sequence[bytes], message: str) -> None:
        """Add a warning about some names, if there are any; ``{names}`` in it stands for the first few."""
        if names:
            self.warnings.append(message.format(names=shown_names(names)))

    def count_sidecar(self, name: bytes) -> None:
        """Count a file for which `is_sidecar` is true."""
        self.ignored[_suffix(name).decode()] += 1

    def add(self, other: Skipped) -> None:
        """Append what was seen elsewhere."""
        self.ignored += other.ignored
        self.warnings += other.warnings


def shown_names(names: Sequence[bytes]) -> str:
    """Return a few names for a message."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(os.fsdecode(name) for name in names[:_SHOWN]) + more


def is_sidecar(name: bytes) -> bool:
    """Return whether a file of that name lies beside images and is none itself."""
    return _suffix(name) in SIDECARS


def _suffix(name: bytes) -> bytes:
    return name[name.rfind(b".") :].lower() if b"." in name else b""


def is_of_the_name(error: OSError) -> bool:
    """Return whether nobody could look at what has this name. Anything else is a file system that fails."""
    return error.errno in _OF_THE_NAME


def scan_directory(path: bytes) -> list[os.DirEntry[bytes]]:
    """Return the entries of a directory in the byte order of their names.

    Raises:
        SourceError: It cannot be read.
    """
    return sorted(scanned(path), key=lambda entry: entry.name)


def scanned(path: bytes) -> Iterator[os.DirEntry[bytes]]:
    """Yield the entries of a directory, in any order.

    Raises:
        SourceError: It cannot be read.
    """
    try:
        with os.scandir(path) as entries:
            yield from entries
    except OSError as error:
        where = os.fsdecode(path).rstrip("/")
        message = f"cannot list the directory {where}: {error.strerror}; make it readable or move it out of the source"
        raise SourceError(message, path=where) from error


def is_directory(entry: os.DirEntry[bytes]) -> bool:
    """Return whether an entry is a directory or a link to one; a link that leads round in a circle is neither."""
    try:
        return entry.is_dir()
    except OSError as error:
        if not is_of_the_name(error):
            raise
        return False


class ClassWalk:
    """Lists the files of one class folder at any depth.

    A link to a file is followed wherever it leads. A link to a directory is followed if that lies in the tree; each
    real directory is listed once per class, so loops of links end.

    Args:
        root: Real path of the source tree.
        skipped: Receives what is not an item.
    """

    def __init__(self, root: bytes, skipped: Skipped) -> None:
        self._root = root
        self._skipped = skipped
        self._seen: set[tuple[int, int]] = set()

    def files(self, folder: bytes) -> list[tuple[bytes, int]]:
        """Return (path below ``folder``, size in bytes) of every item, in the byte order of the paths."""
        found: list[tuple[bytes, int]] = []
        pending = [b""]
        self._enter(folder)
        while pending:
            below = pending.pop()
            for entry in scan_directory(os.path.join(folder, below)):  # noqa: PTH118 - pathlib has no bytes paths
                path = below + entry.name
                if is_directory(entry):
                    if self._follows(entry):
                        pending.append(path + b"/")
                elif (size := self._item_size(entry)) is not None:
                    found.append((path, size))
        found.sort()
        return found

    def _enter(self, folder: bytes) -> bool:
        info = os.stat(folder)  # noqa: PTH116 - pathlib has no bytes paths
        identity = (info.st_dev, info.st_ino)
        if identity in self._seen:
            return False
        self._seen.add(identity)
        return True

    def _item_size(self, entry: os.DirEntry[bytes]) -> int | None:
        """Return the size of an entry that is an item; count it among the ignored ones and return None otherwise."""
        name = entry.name
        if name.startswith(b"."):
            self._skipped.ignored["hidden"] += 1
            return None
        if is_sidecar(name):
            self._skipped.count_sidecar(name)
            return None
        try:
            info = entry.stat()
        except OSError as error:
            if not is_of_the_name(error):
                raise
            return 0  # a link to nowhere: still an item, so that the build names it among the rejects
        if not stat.S_ISREG(info.st_mode):
            self._skipped.ignored["special file"] += 1
            return None
        return info.st_size

    def _follows(self, entry: os.DirEntry[bytes]) -> bool:
        if entry.name.startswith(b"."):
            self._skipped.ignored["hidden"] += 1
            return False
        return (not entry.is_symlink() or self.stays_inside(entry)) and self._enter(entry.path)

    def stays_inside(self, entry: os.DirEntry[bytes]) -> bool:
        """Return whether a link to a directory leads to a place in the tree; report it if it does not."""
        target = os.path.realpath(entry.path)
        if target.startswith(self._root.rstrip(b"/") + b"/"):
            return True
        self._skipped.ignored["link out of the tree"] += 1
        where, there = os.fsdecode(entry.path), os.fsdecode(target)
        self._skipped.warnings.append(f"{where} links to {there}, outside the source: not followed; copy or mount it")
        return False


# Folders of stores: the prefixes of keys, which are listed and never looked at one object at a time.
#
# Some programs mark a folder with an empty object whose name is that of the folder and a slash. Clients show it
# without the slash, as if it were an empty file; but there is nothing under that name.


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


if TYPE_CHECKING:
    FolderEntry = os.DirEntry[bytes] | StoredEntry


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies in a folder at any depth.

    Attributes:
        files: Path below the folder and size in bytes of every item, in the byte order of the paths.
        skipped: What is not an item.
    """

    files: list[tuple[bytes, int]]
    skipped: Skipped = field(default_factory=Skipped)


FolderLister = Callable[[bytes, Iterable[bytes]], Iterator[Listing]]
"""Does what `list_folders` does, perhaps elsewhere."""


def scan(where: bytes) -> list[os.DirEntry[bytes]] | list[StoredEntry]:
    """Return what lies directly in a folder, in the byte order of the names.

    Raises:
        SourceError: It cannot be read.
        StorageError: The store is gone.
    """
    return scan_stored(where) if is_remote(where) else scan_directory(where)


def is_folder(entry: FolderEntry) -> bool:
    """Return whether an entry is a folder or a link to one; a link that leads round in a circle is neither."""
    return entry.folder if isinstance(entry, StoredEntry) else is_directory(entry)


def folders_in(where: bytes) -> list[bytes]:
    """Return the names of the folders that lie directly in a folder, in the order of their bytes.

    Raises:
        SourceError: It cannot be read.
        StorageError: The store is gone.
    """
    if is_remote(where):
        return [entry.name for entry in scan_stored(where) if entry.folder]
    # There may be half a million annotations, which need not all be held.
    return sorted(entry.name for entry in scanned(where) if is_directory(entry))


def seen_in(where: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield the name of what lies directly in a folder and whether that is a folder, in any order, perhaps repeatedly.

    For those who need to see a few names of very many.

    Raises:
        SourceError: It cannot be read.
        StorageError: The store is gone.
    """
    if is_remote(where):
        for path, _ in stored_below(where):
            name, slash, _ = path.partition(b"/")
            yield name, bool(slash)
        return
    yield from ((entry.name, is_directory(entry)) for entry in scanned(where))


def list_folders(root: bytes, folders: Iterable[bytes]) -> Iterator[Listing]:
    """Yield what lies in each of some folders below a root, in their order; those of a store several at a time.

    Raises:
        SourceError: One cannot be read.
        StorageError: The store is gone.
    """

    def listing(folder: bytes) -> Listing:
        skipped = Skipped()
        where = (root + b"/" + folder).rstrip(b"/")
        if is_remote(where):
            return Listing(stored_files(where, skipped), skipped)
        return Listing(ClassWalk(root, skipped).files(where), skipped)

    return in_order(listing, folders, AT_ONCE if is_remote(root) else 1)

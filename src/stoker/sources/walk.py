"""Walking one class folder: links, loops and odd directory entries."""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stoker.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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

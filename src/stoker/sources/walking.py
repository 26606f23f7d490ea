"""Folders of images and of annotations: what lies in them, and what of it is an item."""

from __future__ import annotations

import errno
import os
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stoker.errors import SourceError, StorageError
from stoker.sources.reading import in_order
from stoker.storage import place_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stoker.storage import Child

SIDECARS = frozenset({b".xml", b".txt", b".csv", b".json", b".md", b".html", b".db", b".ini"})
"""Suffixes of files that lie beside images and are never images."""

_SHOWN = 5


@dataclass(slots=True)
class Skipped:
    """What a listing met that is not an item.

    Attributes:
        ignored: How many, by suffix or by kind (``hidden``, ``special file``, ``link out of the tree``, ...).
        warnings: Warnings for the user, in the order in which they were found.
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
        """Append what another listing met."""
        self.ignored += other.ignored
        self.warnings += other.warnings


def shown_names(names: Sequence[bytes]) -> str:
    """Return a few names for a message."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(os.fsdecode(name) for name in names[:_SHOWN]) + more


def is_sidecar(name: bytes) -> bool:
    """Return whether a file of that name lies beside images and is not one itself."""
    return _suffix(name) in SIDECARS


def _suffix(name: bytes) -> bytes:
    return name[name.rfind(b".") :].lower() if b"." in name else b""


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies in a folder at any depth.

    Attributes:
        files: Path below the folder and size in bytes of every item, in the byte order of the paths.
        skipped: What is not an item.
    """

    files: list[tuple[bytes, int]]
    skipped: Skipped = field(default_factory=Skipped)


def scan(where: bytes) -> list[Child]:
    """Return what lies directly in a folder, in the byte order of the names.

    Raises:
        SourceError: It cannot be read.
        StorageError: The store cannot be reached.
    """
    with _listing(where):
        return place_at(where).children()


def folders_in(where: bytes) -> list[bytes]:
    """Return the names of the folders that lie directly in a folder, in the order of their bytes.

    Raises:
        SourceError: It cannot be read.
        StorageError: The store cannot be reached.
    """
    with _listing(where):
        return place_at(where).folders()


def seen_in(where: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield the name of what lies directly in a folder and whether that is a folder, in any order, perhaps repeatedly.

    For callers that need to see a few names of very many.

    Raises:
        SourceError: It cannot be read.
        StorageError: The store cannot be reached.
    """
    with _listing(where):
        yield from ((child.name, child.is_folder) for child in place_at(where).some_children())


def list_folders(root: bytes, folders: Iterable[bytes]) -> Iterator[Listing]:
    """Yield what lies in each of some folders below a root, in their order; those of a store several at a time.

    Raises:
        SourceError: One cannot be read.
        StorageError: The store cannot be reached.
    """

    def listing(folder: bytes) -> Listing:
        return _list_items((root + b"/" + folder).rstrip(b"/"), root)

    return in_order(listing, folders, place_at(root).requests_at_once)


def stays_inside(link: bytes, target: bytes, root: bytes, skipped: Skipped) -> bool:
    """Return whether a link to a folder leads to a place in the tree; report it if it does not."""
    if target.startswith(root.rstrip(b"/") + b"/"):
        return True
    skipped.ignored["link out of the tree"] += 1
    where, there = os.fsdecode(link), os.fsdecode(target)
    skipped.warnings.append(f"{where} links to {there}, outside the source: not followed; copy or mount it")
    return False


def _list_items(where: bytes, root: bytes) -> Listing:
    """Return the items of one class folder.

    A link to a file is followed wherever it leads. A link to a folder is followed if that lies in the tree.
    """
    skipped = Skipped()
    found: list[tuple[bytes, int]] = []
    hidden: set[bytes] = set()

    def enters(path: bytes, target: bytes) -> bool:
        if (top := _hidden_part(path)) is not None:
            hidden.add(top)
            return False
        return not target or stays_inside(where + b"/" + path, target, root, skipped)

    with _listing(where):
        for path, size in place_at(where).files_below(enters):
            name = path[path.rfind(b"/") + 1 :]
            if (top := _hidden_part(path)) is not None:
                hidden.add(top)
            elif is_sidecar(name):
                skipped.count_sidecar(name)
            elif size is None:
                skipped.ignored["special file"] += 1
            else:
                found.append((path, size))
    if hidden:
        skipped.ignored["hidden"] += len(hidden)
    found.sort()
    return Listing(found, skipped)


def _hidden_part(path: bytes) -> bytes | None:
    """Return the path up to the first part that is hidden."""
    if path.startswith(b"."):
        return path.partition(b"/")[0]
    at = path.find(b"/.")
    if at < 0:
        return None
    end = path.find(b"/", at + 1)
    return path if end < 0 else path[:end]


@contextmanager
def _listing(where: bytes) -> Iterator[None]:
    """Raise a `SourceError` for what keeps a folder from being listed, unless the store cannot be reached."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        place = os.fsdecode(error.filename or where).rstrip("/")
        problem = error.strerror or str(error)
        if error.errno == errno.EINVAL:
            advice = "no client can read an object of such a name; rename or delete it"
        else:
            advice = "make it readable or move it out of the source"
        raise SourceError(f"cannot list the folder {place}: {problem}; {advice}", path=place) from error

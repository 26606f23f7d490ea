"""Folders of images and of annotations, on this machine or in a store."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stoker.sources.in_order import AT_ONCE, in_order
from stoker.sources.stored import StoredEntry, scan_stored, stored_below, stored_files
from stoker.sources.walk import ClassWalk, Skipped, is_directory, scan_directory, scanned
from stoker.storage import is_remote

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

    FolderEntry = os.DirEntry[bytes] | StoredEntry
    FolderLister = Callable[[bytes, Iterable[bytes]], Iterator["Listing"]]
    """Does what `list_folders` does, perhaps elsewhere."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies in a folder at any depth.

    Attributes:
        files: Path below the folder and size in bytes of every item, in the byte order of the paths.
        skipped: What is not an item.
    """

    files: list[tuple[bytes, int]]
    skipped: Skipped = field(default_factory=Skipped)


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

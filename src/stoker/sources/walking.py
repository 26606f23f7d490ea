"""Folders of images and of annotations: what lies in them, and what of it is an item."""

from __future__ import annotations

import errno
import os
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stoker.config import IMAGE_SUFFIXES, format_count, format_some
from stoker.errors import SourceError, StorageError
from stoker.format import BUILD_FOLDER, JOURNAL_NAME, MANIFEST_NAME
from stoker.sources.reading import in_order
from stoker.storage import Child, Location, from_uri

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


SIDECARS = frozenset({b".xml", b".txt", b".csv", b".json", b".md", b".html", b".db", b".ini", b".journal"})
"""Suffixes of files that lie beside images and are never images."""

JUNK = frozenset(
    b"__MACOSX .ipynb_checkpoints __pycache__ @eaDir @Recycle @Recently-Snapshot @tmp #recycle #snapshot lost+found"
    b" $RECYCLE.BIN $Recycle.Bin RECYCLER".split()
) | {b"System Volume Information"}
"""Folders that archivers, notebooks, network storage and systems leave among those of users: never classes."""

_DATASET_MARKS = frozenset(map(str.encode, (MANIFEST_NAME, JOURNAL_NAME, BUILD_FOLDER)))
"""What lies directly in a dataset of Stoker's: the first in one that is built, the others in one that is not yet: on
this machine and in a store."""
_IMAGE_SUFFIXES = frozenset(f".{suffix}".encode() for suffix in IMAGE_SUFFIXES)
_MANIFEST_BEGINS = re.compile(rb'\s*\{\s*"format":\s*"stoker-dataset"')
_HEAD_BYTES = 128

_SHOWN = 5


@dataclass(slots=True)
class Skipped:
    """What a listing met that is not an item."""

    # how many, by suffix or by kind (``hidden``, ``junk``, ``special file``, ``link out of the tree``, ...)
    ignored: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)  # warnings for the user, in the order in which they were found

    def warn(self, names: Sequence[bytes], message: str) -> None:
        """Add a warning about some names, if there are any; ``{names}`` in it stands for the first few."""
        if names:
            self.warnings.append(message.replace("{names}", shown_names(names)))

    def count_sidecar(self, name: bytes) -> None:
        """Count a file for which `is_sidecar` is true."""
        self.ignored[suffix_of(name).decode()] += 1

    def add(self, other: Skipped) -> None:
        """Append what another listing met."""
        self.ignored += other.ignored
        self.warnings += other.warnings


def shown_names(names: Sequence[bytes]) -> str:
    """Return a few names for a message."""
    return format_some(names, _SHOWN, os.fsdecode)


def is_sidecar(name: bytes) -> bool:
    """Return whether a file of that name lies beside images and is not one itself."""
    return suffix_of(name) in SIDECARS


def is_dataset(folder: Location) -> bool:
    """Return whether a folder is a dataset that Stoker has built or is building.

    Raises:
        StorageError: The store cannot be reached.
    """
    if (folder / JOURNAL_NAME).lexists() if folder.is_local else (folder / BUILD_FOLDER).is_dir():
        return True
    manifest = folder / MANIFEST_NAME  # other programs write files of that name, too
    try:
        return manifest.lexists() and _MANIFEST_BEGINS.match(manifest.read_head(_HEAD_BYTES)) is not None
    except StorageError:
        raise
    except OSError:
        return False


def is_image_name(name: bytes) -> bool:
    """Return whether the suffix of a file is that of an image."""
    return suffix_of(name) in _IMAGE_SUFFIXES


def may_be_image(name: bytes) -> bool:
    """Return whether a file may be an image where other files lie among these: by its suffix, or as it has none."""
    return is_image_name(name) or not suffix_of(name)


def images_among(files: Sequence[tuple[bytes, int]], skipped: Skipped) -> list[tuple[bytes, int]]:
    """Return the files that may be images, of paths and bytes; count and warn of the others."""
    others = [name for name, _ in files if not may_be_image(name)]
    skipped.ignored.update(suffix_of(name).decode("ascii", "replace") for name in others)
    skipped.warn(others, f"{format_count(len(others), 'file')} with no name of an image, not used: {{names}}")
    return [file for file in files if may_be_image(file[0])] if others else list(files)


def suffix_of(name: bytes) -> bytes:
    """Return what the name of a file ends with, in small letters and with its dot; empty without one."""
    return name[name.rfind(b".") :].lower() if b"." in name else b""


def divide_suffix(path: bytes) -> tuple[bytes, bytes]:
    """Return a path without what its name ends with, and that; the name of a hidden file is all of it."""
    return os.path.splitext(path)  # noqa: PTH122 - pathlib has no bytes paths


def image_stem(path: bytes) -> bytes:
    """Return the name of a file without its folders and its ending, which is what its annotation is called."""
    return divide_suffix(path.rpartition(b"/")[2])[0]


def replace_last(parts: list[bytes], name: bytes, new: bytes) -> bool:
    """Rename the last part of a path that has a name; return whether there is one."""
    if name not in parts:
        return False
    parts[len(parts) - 1 - parts[::-1].index(name)] = new
    return True


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies in a folder at any depth."""

    # path below the folder and size in bytes of every item, in the byte order of the paths
    files: list[tuple[bytes, int]]
    skipped: Skipped = field(default_factory=Skipped)  # what is not an item
    # whether the folder is a dataset that Stoker has built or is building, so that nothing is an item
    is_dataset: bool = False


def folders_in(where: bytes) -> list[bytes]:
    """Return the names of the folders that lie directly in a folder, in the order of their bytes, without `JUNK`."""
    with _listing(where):
        return [name for name in from_uri(where).folders() if name not in JUNK]


def seen_in(where: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield the name of what lies directly in a folder and whether that is a folder, in any order, perhaps repeatedly.

    For callers that need to see a few names of very many.
    """
    with _listing(where):
        yield from ((child.name, child.is_folder) for child in from_uri(where).some_children())


@dataclass(frozen=True, slots=True)
class Walk:
    """Walks over the folders of a source. Links are followed wherever they lead, except round in a circle."""

    root: bytes  # absolute path or URL of the folder that the paths are below
    # A folder that is not part of the source though it lies in it: where a dataset is being built
    without: Location | None = None

    def scan(self, folder: bytes, skipped: Skipped) -> list[Child]:
        """Return what lies directly in a folder, in the byte order of the names, without `JUNK` and what leads back.

        The path of the folder below the root is empty, or ends in a slash, as it does in `list_folders`.
        """
        top, children = from_uri(self.root), []
        with _listing(self._at(folder)):
            for child in from_uri(self._at(folder)).children():
                path = folder + child.name
                if child.is_folder and self._is_without(path):
                    continue
                if child.is_folder and child.name in JUNK:
                    skipped.ignored["junk"] += 1
                    continue
                if child.is_folder and child.is_link and top.leads_back(path):
                    self._add_loop(path, skipped)
                    continue
                children.append(child)
        return children

    def list_folders(self, folders: Iterable[bytes]) -> Iterator[Listing]:
        """Yield what lies in each of some folders, in their order; those of a store several at a time."""
        return in_order(self._list_items, folders, from_uri(self.root).requests_at_once)

    def _list_items(self, folder: bytes) -> Listing:
        skipped = Skipped()
        files: list[tuple[bytes, int]] = []
        hidden: set[bytes] = set()
        marks: set[bytes] = set()
        # Of a store, whose folders are not entered.
        left_out = None if self.without is None or self.without.is_local else self.without.to_uri() + b"/"

        def enters(path: bytes, leads_back: bool) -> bool:  # noqa: FBT001 - as a walk calls it
            if (top := _hidden_part(path + b"/")) is not None:
                hidden.add(top)
                return False
            return self._enters(folder + path, skipped, leads_back=leads_back)

        with _listing(self._at(folder)):
            for path, size in from_uri(self.root).files_below(enters, folder):
                if left_out is not None and self._at(folder + path).startswith(left_out):
                    continue
                if (top := _hidden_part(path)) is not None:
                    hidden.add(top)
                elif is_sidecar(path):
                    skipped.count_sidecar(path)
                    if path in _DATASET_MARKS:
                        marks.add(path)
                elif size is None:
                    skipped.ignored["special file"] += 1
                else:
                    files.append((path, size))
        skipped.ignored.update("junk" if top.rpartition(b"/")[2] in JUNK else "hidden" for top in hidden)
        files.sort()
        marks |= hidden & _DATASET_MARKS
        return Listing(files, skipped, is_dataset=bool(marks) and is_dataset(from_uri(self._at(folder))))

    def _enters(self, folder: bytes, skipped: Skipped, *, leads_back: bool) -> bool:
        """Return whether a folder is part of the source; report one that is not."""
        if leads_back:
            self._add_loop(folder, skipped)
        elif not self._is_without(folder):
            if not is_dataset(from_uri(self._at(folder))):
                return True
            skipped.ignored["dataset"] += 1
        return False

    def _at(self, path: bytes) -> bytes:
        return (self.root + b"/" + path).rstrip(b"/")

    def _is_without(self, folder: bytes) -> bool:
        return self.without is not None and from_uri(self._at(folder)).is_same(self.without)

    def _add_loop(self, path: bytes, skipped: Skipped) -> None:
        skipped.ignored["loop of links"] += 1
        where = os.fsdecode(self._at(path))
        target = os.fsdecode(from_uri(self._at(path)).to_uri())
        skipped.warnings.append(f"{where} is a link to {target}, a folder that it lies in: not followed again")


def _hidden_part(path: bytes) -> bytes | None:
    """Return the path up to the first part that is hidden, or a folder of `JUNK`; a folder itself ends in a slash."""
    if b"/" not in path:
        return path if path.startswith(b".") else None
    *folders, name = path.split(b"/")
    for depth, part in enumerate(folders, 1):
        if part.startswith(b".") or part in JUNK:
            return b"/".join(folders[:depth])
    return path if name.startswith(b".") else None


@contextmanager
def _listing(where: bytes) -> Iterator[None]:
    """Raise a `SourceError` for what keeps a folder from being listed, unless the store cannot be reached."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        folder = os.fsdecode(error.filename or where).rstrip("/")
        problem = error.strerror or str(error)
        if error.errno == errno.EINVAL:
            advice = "no client can read an object of such a name; rename or delete it"
        else:
            advice = "make it readable or move it out of the source"
        raise SourceError(f"cannot list the folder {folder}: {problem}; {advice}", path=folder) from error
